import type { Config } from "../../config.ts";
import { AppError } from "../../core/errors.ts";
import { limitsOf, overQuota } from "../../core/quotas.ts";
import { DAY_MS } from "../../core/time/units.ts";
import type { Db, Statement, Store } from "../../store/engine/client.ts";
import { isBroken } from "../../store/engine/guards.ts";
import { holdingsOf, overQuotaIn, withinStored } from "../../store/projects/holdings.ts";
import type { Project } from "../../store/projects/projects.ts";
import { storedOctets } from "../../store/messages/stored-octets.ts";
import { takeUsage, usageOf, utcDay } from "../../store/projects/usage.ts";

/** Recipients per UTC day by trust tier. A tier without an entry counts as the default one. */
export type VolumeLimits = Pick<Config, "tiers" | "defaultTrustTier"> & Partial<Pick<Config, "quotas">>;

/** Returns the most octets that a project can store; null for no limit. */
export function storedLimitOf({ quotas }: VolumeLimits, { plan }: Pick<Project, "plan">): number | null {
  return quotas === undefined ? null : limitsOf(quotas, plan).storedOctets;
}

/** The services that count volume. */
interface Counting extends Store {
  volume: VolumeLimits;
}

/** A message as volume counts it. Each accepted recipient counts: suppressed, simulated and scheduled ones, too. */
export interface Counted {
  recipients: number;
  /** True if it is captured mail, which counts in no quota. */
  captured: boolean;
  /** The statements of its commit. */
  statements: readonly Statement[];
}

/**
 * Maximum number of attempts at a write that exceeds the limit because other writes took the room in between.
 */
const MAX_TRIES = 10;

interface Limit {
  recipients: number;
  code: "daily_quota_exceeded" | "trust_tier_exceeded";
  message: string;
}

/**
 * Returns the limit of the project: the lower of its quota and its tier's limit, or null if there is none.
 */
function limitOf(
  { tiers, defaultTrustTier }: VolumeLimits,
  { trustTier, dailyQuota }: Project,
): Limit | null {
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

/** Returns the start of the next UTC day, milliseconds. */
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
 * Commits in one write the sends that fit the project's volume of the day and its stored octets. They are taken in
 * order. If one is too large, a smaller one after it is still taken. Captured mail has no limits, and comes alone.
 * @param record statements for the same write, given the refusals; called again if other writes took the room
 * @returns the refusals by send, 403 `daily_quota_exceeded`, `trust_tier_exceeded` or `quota_exceeded`; all others are
 *   committed
 * @throws AppError 503 if other writes kept taking the room, and nothing was committed
 */
export async function commitWithinVolume<Send extends Counted>(
  deps: Counting,
  project: Project,
  sends: readonly Send[],
  record: (refused: ReadonlyMap<Send, AppError>) => readonly Statement[],
): Promise<ReadonlyMap<Send, AppError>> {
  const limit = limitOf(deps.volume, project);
  const storedLimit = sends.some(({ captured }) => captured) ? null : storedLimitOf(deps.volume, project);
  let room: StoredRoom | null = null;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const now = deps.clock.now();
    const day = utcDay(now);
    const used = limit === null ? 0 : await usageOf(deps.db, project.id, day);
    const refused = refusals(sends, [volumeRule(limit, used, now), storedRule(room)]);
    const taken = sends.filter((send) => !refused.has(send));
    const recipients = taken.reduce((sum, send) => sum + send.recipients, 0);
    // First in the write: if it fails, nothing was done in vain.
    const usage = recipients === 0 ? [] : [takeUsage(project.id, day, recipients, limit?.recipients ?? null)];
    const recorded = record(refused);
    const within = withinStored(project.id, storedLimit);
    const stored = [...taken.flatMap((send) => send.statements), ...recorded];
    try {
      await deps.db.write([...usage, ...stored, ...(stored.length === 0 ? [] : within)]);
      return refused;
    } catch (error) {
      const isFull = overQuotaIn(error) !== null;
      // Even the answer that nothing is accepted does not fit.
      if (isFull && taken.length === 0) throw overQuota("storedOctets", storedLimit);
      if (isFull) room = await storedRoom(deps.db, project.id, storedLimit, storedOctets(recorded), room);
      else if (!isBroken(error, "over_daily_volume")) throw error;
    }
  }
  throw new AppError("service_unavailable", "Too many sends at once. Try again.", { retryAfterSeconds: 1 });
}

/** The room that a project's stored octets leave for sends, read after a write that did not fit. */
interface StoredRoom {
  limit: number | null;
  left: number;
  /** Octets of the events and the answer that come with the sends. */
  besides: number;
}

async function storedRoom(
  db: Db,
  senderId: string,
  limit: number | null,
  besides: number,
  before: StoredRoom | null,
): Promise<StoredRoom> {
  const { storedOctets: used } = await holdingsOf(db, senderId);
  // A refusal makes the answer longer, so each attempt reserves as much as any answer before took.
  const most = Math.max(besides, before?.besides ?? 0);
  return { limit, left: (limit ?? Number.POSITIVE_INFINITY) - used - most, besides: most };
}

/**
 * Refuses a send if the day has no room left. `commitWithinVolume` decides. Call it before content is written ahead.
 * Content of a refused send stays for an hour, so a project out of volume could fill the disk with it.
 * @throws AppError 403 `daily_quota_exceeded`, `trust_tier_exceeded`
 */
export async function refuseOverVolume(deps: Counting, project: Project, recipients: number): Promise<void> {
  const limit = limitOf(deps.volume, project);
  if (limit === null) return;
  const now = deps.clock.now();
  const left = Math.max(0, limit.recipients - (await usageOf(deps.db, project.id, utcDay(now))));
  if (recipients > left) throw refusal(limit, left, now);
}

/** A project's volume of a UTC day, in recipients. If there is no limit, `limit` and `remaining` are null. */
export interface VolumeOfDay {
  limit: number | null;
  used: number;
  remaining: number | null;
  /** Start of the next day, milliseconds. */
  resetAt: number;
}

/** Returns the project's usage on the UTC day of `now`, and the rest. */
export async function volumeOfDay(
  db: Db,
  limits: VolumeLimits,
  project: Project,
  now: number,
): Promise<VolumeOfDay> {
  const limit = limitOf(limits, project)?.recipients ?? null;
  const used = await usageOf(db, project.id, utcDay(now));
  const remaining = limit === null ? null : Math.max(0, limit - used);
  return { limit, used, remaining, resetAt: nextDay(now) };
}

/** Returns why a send is refused. If it fits, takes its share of the room and returns null. */
interface Rule {
  refuses(send: Counted): AppError | null;
  take(send: Counted): void;
}

function volumeRule(limit: Limit | null, used: number, now: number): Rule {
  let left = limit === null ? Number.POSITIVE_INFINITY : Math.max(0, limit.recipients - used);
  return {
    refuses: ({ recipients }) => (limit === null || recipients <= left ? null : refusal(limit, left, now)),
    take: ({ recipients }) => {
      left -= recipients;
    },
  };
}

/** Counts each send as if none of its content were stored already, so an accepted send always fits. */
function storedRule(room: StoredRoom | null): Rule {
  let left = room === null ? Number.POSITIVE_INFINITY : room.left;
  return {
    refuses: ({ statements }) =>
      room === null || storedOctets(statements) <= left ? null : overQuota("storedOctets", room.limit),
    take: ({ statements }) => {
      if (room !== null) left -= storedOctets(statements);
    },
  };
}

function refusals<Send extends Counted>(sends: readonly Send[], rules: readonly Rule[]): Map<Send, AppError> {
  const refused = new Map<Send, AppError>();
  for (const send of sends) {
    const found = rules.map((rule) => rule.refuses(send)).find((refusal) => refusal !== null);
    if (found !== undefined && found !== null) refused.set(send, found);
    else for (const rule of rules) rule.take(send);
  }
  return refused;
}
