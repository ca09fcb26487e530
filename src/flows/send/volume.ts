import type { Config } from "../../config.ts";
import type { Clock } from "../../core/clock.ts";
import { AppError } from "../../core/errors.ts";
import { DAY_MS } from "../../core/time-units.ts";
import type { Db, Statement } from "../../store/engine/client.ts";
import type { Sender } from "../../store/senders.ts";
import { isOverUsage, takeUsage, usageOf, utcDay } from "../../store/usage.ts";

/** Recipients a UTC day by trust tier. A tier that is named nowhere counts as the default one. */
export type VolumeLimits = Pick<Config, "tiers" | "defaultTrustTier">;

export interface VolumeDeps {
  db: Db;
  clock: Clock;
  volume: VolumeLimits;
}

/** A message as volume sees it. Every recipient accepted counts: suppressed, simulated and scheduled ones too. */
export interface Counted {
  recipients: number;
  /** What its commit writes. */
  statements: readonly Statement[];
}

/** Writes over the limit tried anew at most: each time other writes took what the last look had found. */
const MAX_TRIES = 10;

interface Limit {
  recipients: number;
  code: "daily_quota_exceeded" | "trust_tier_exceeded";
  message: string;
}

/** The limit that binds the project: its own quota where that is the lower one, else its tier's; null for none. */
function limitOf({ tiers, defaultTrustTier }: VolumeLimits, { trustTier, dailyQuota }: Sender): Limit | null {
  const tier = tiers[Object.hasOwn(tiers, trustTier) ? trustTier : defaultTrustTier] ?? null;
  if (dailyQuota !== null && (tier === null || dailyQuota < tier))
    return {
      recipients: dailyQuota,
      code: "daily_quota_exceeded",
      message: `The project's quota is ${dailyQuota} recipients a UTC day`,
    };
  if (tier === null) return null;
  return {
    recipients: tier,
    code: "trust_tier_exceeded",
    message: `The project's trust tier allows ${tier} recipients a UTC day`,
  };
}

/** When the UTC day after that of `now` begins; milliseconds. */
function nextDay(now: number): number {
  return (Math.floor(now / DAY_MS) + 1) * DAY_MS;
}

function refusal(limit: Limit, left: number, now: number): AppError {
  const resetAt = new Date(nextDay(now)).toISOString();
  return new AppError("permission_error", `${limit.message}, of which ${left} are left.`, {
    code: limit.code,
    resetAt,
  });
}

/**
 * Commits, in one write, those of the sends that the project's volume of the day has room for, and what `record` says
 * of that outcome. They are taken in order; one that is too large does not keep a smaller one behind it out.
 * @param record statements for the same write; called anew where other writes took the room meanwhile
 * @returns the refusals, 403 `daily_quota_exceeded` or `trust_tier_exceeded`, by their sends; all others are committed
 * @throws AppError 503 where other writes kept taking the room, and nothing was committed
 */
export async function commitWithinVolume<Send extends Counted>(
  deps: VolumeDeps,
  project: Sender,
  sends: readonly Send[],
  record: (refused: ReadonlyMap<Send, AppError>) => readonly Statement[],
): Promise<ReadonlyMap<Send, AppError>> {
  const limit = limitOf(deps.volume, project);
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const now = deps.clock.now();
    const day = utcDay(now);
    const used = limit === null ? 0 : await usageOf(deps.db, project.id, day);
    const refused = limit === null ? new Map<Send, AppError>() : refusals(limit, used, sends, now);
    const taken = sends.filter((send) => !refused.has(send));
    const recipients = taken.reduce((sum, send) => sum + send.recipients, 0);
    // First in the write: where it fails, nothing was done in vain.
    const usage = recipients === 0 ? [] : [takeUsage(project.id, day, recipients, limit?.recipients ?? null)];
    try {
      await deps.db.write([...usage, ...taken.flatMap((send) => send.statements), ...record(refused)]);
      return refused;
    } catch (error) {
      if (!isOverUsage(error)) throw error;
    }
  }
  throw new AppError("service_unavailable", "Too many sends at once. Try again.", { retryAfter: 1 });
}

/**
 * Refuses a send for which the day has no room left. `commitWithinVolume` decides; this is for a send that writes ahead
 * of it, since what comes of a refused one stays for an hour: a project out of its volume could fill the disk with them.
 * @throws AppError 403 `daily_quota_exceeded`, `trust_tier_exceeded`
 */
export async function refuseOverVolume(deps: VolumeDeps, project: Sender, recipients: number): Promise<void> {
  const limit = limitOf(deps.volume, project);
  if (limit === null) return;
  const now = deps.clock.now();
  const left = Math.max(0, limit.recipients - (await usageOf(deps.db, project.id, utcDay(now))));
  if (recipients > left) throw refusal(limit, left, now);
}

/** A project's volume of a UTC day, in recipients. `limit` and `remaining` null: there is no limit. */
export interface VolumeOfDay {
  limit: number | null;
  used: number;
  remaining: number | null;
  /** When the next day begins; milliseconds. */
  resetAt: number;
}

/** What the project has used of the day that `now` lies in, and what is left of it. */
export async function volumeOfDay(
  db: Db,
  limits: VolumeLimits,
  project: Sender,
  now: number,
): Promise<VolumeOfDay> {
  const limit = limitOf(limits, project)?.recipients ?? null;
  const used = await usageOf(db, project.id, utcDay(now));
  const remaining = limit === null ? null : Math.max(0, limit - used);
  return { limit, used, remaining, resetAt: nextDay(now) };
}

function refusals<Send extends Counted>(
  limit: Limit,
  used: number,
  sends: readonly Send[],
  now: number,
): Map<Send, AppError> {
  const refused = new Map<Send, AppError>();
  let left = Math.max(0, limit.recipients - used);
  for (const send of sends) {
    if (send.recipients <= left) left -= send.recipients;
    else refused.set(send, refusal(limit, left, now));
  }
  return refused;
}
