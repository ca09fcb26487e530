import type { Config } from "../../config.ts";
import type { NoticeKind } from "../../core/notices/kinds.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../core/time/units.ts";
import type { Store } from "../../store/engine/client.ts";
import { readFact } from "../../store/installation/facts.ts";
import {
  disabledWebhooks,
  type Fact,
  failingDomains,
  failingWebhooks,
  nearVolumes,
  operatorAccount,
  projectsAmong,
  suspendedProjects,
} from "../../store/notices/facts.ts";
import { nearSuspension } from "../../store/projects/reputation.ts";
import { certificateStates } from "../certificates/states.ts";
import { suspensionLimits } from "../deliver/reputation.ts";
import type { FreeSpace } from "../free-space.ts";
import { nearQuotas } from "../health/quotas.ts";
import { diskFinding, LATE_BACKUPS } from "../health/storage.ts";
import { type ReadLanesDeps, readLanes } from "../lanes/read-lanes.ts";

/** The services that facts are read from. */
export interface FactDeps extends Store, ReadLanesDeps {
  config: Config;
  /** The disk of the database. */
  space: Pick<FreeSpace, "read">;
  /** Returns what a start left whose migration failed; null if there is nothing. */
  failedMigration: () => FailedMigration | null;
}

/** A start whose migration failed. */
export interface FailedMigration {
  version: string;
  error: string;
}

/** Maximum number of facts of a kind in one look. If there are more, no notice of that kind ends. */
export const MAX_FACTS = 500;
/** Time for which a webhook fails before people are told, milliseconds: a restart of its server is no news. */
export const FAILING_AFTER_MS = 5 * MINUTE_MS;
/** Share of a day's recipients from which on people are told. */
const NEAR_VOLUME = 0.8;
/** Time left at which a certificate that nobody renews is news, milliseconds. */
const EXPIRES_SOON_MS = 14 * DAY_MS;

type ReadFacts = (deps: FactDeps, now: number) => Promise<Fact[]>;

/** Where the facts of each kind come from that the chore reads. Those of other kinds are raised in the write that makes them true. */
export const FACT_SOURCES: Partial<Readonly<Record<NoticeKind, ReadFacts>>> = {
  domain_failing: ({ db }) => failingDomains(db, MAX_FACTS),
  certificate_failing: failingCertificates,
  project_near_suspension: async ({ db, config }, now) =>
    projectsAmong(db, await nearSuspension(db, suspensionLimits(config), now, MAX_FACTS)),
  project_suspended: ({ db }) => suspendedProjects(db, MAX_FACTS),
  webhook_failing: ({ db }, now) => failingWebhooks(db, now - FAILING_AFTER_MS, MAX_FACTS),
  webhook_disabled: ({ db }) => disabledWebhooks(db, MAX_FACTS),
  quota_near: quotas,
  volume_near: volumes,
  address_blocked: blockedLanes,
  disk_low: lowDisk,
  backup_old: oldBackup,
  migration_failed: failedMigrations,
};

/** Returns the facts about the installation, which are for the operator's account. */
export async function ofInstallation(
  { db }: Store,
  facts: readonly Pick<Fact, "subjectId" | "subject" | "detail">[],
): Promise<Fact[]> {
  const operator = facts.length === 0 ? null : await operatorAccount(db);
  return operator === null ? [] : facts.map((fact) => ({ ...fact, accountId: operator.id, senderId: null }));
}

async function failingCertificates({ db, clock, config }: FactDeps, now: number): Promise<Fact[]> {
  const failing = (await certificateStates(db, config, now)).flatMap((state) => {
    const { accountId, names, lastError, expiresAt, source } = state;
    const soon = source !== "self-signed" && expiresAt !== null && expiresAt - now < EXPIRES_SOON_MS;
    if (lastError === null && !soon) return [];
    const [subject = "our names"] = names;
    const expires = expiresAt === null ? "" : ` It expires on ${dayOf(expiresAt)}.`;
    const detail = `${lastError === null ? "" : `${lastError.text}.`}${expires}`.trim();
    return [{ accountId, subjectId: names.join(" "), subject, detail }];
  });
  const own = failing.filter(({ accountId }) => accountId === null);
  return [
    ...(await ofInstallation({ db, clock }, own)),
    ...failing.flatMap(({ accountId, ...fact }) =>
      accountId === null ? [] : [{ ...fact, accountId, senderId: null }],
    ),
  ].slice(0, MAX_FACTS);
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

async function quotas({ db, config }: FactDeps): Promise<Fact[]> {
  const near = await nearQuotas(db, config.quotas, MAX_FACTS);
  const facts = near.map(({ accountId, senderId, project, resource, used, limit }) => ({
    accountId,
    senderId,
    subjectId: `${senderId} ${resource}`,
    subject: project,
    detail: `It has ${used} of ${limit} ${resource}.`,
  }));
  return facts.slice(0, MAX_FACTS);
}

async function volumes({ db, config }: FactDeps, now: number): Promise<Fact[]> {
  const near = await nearVolumes(db, config, { now, share: NEAR_VOLUME, take: MAX_FACTS });
  return near.map(({ accountId, senderId, externalId, recipients, limit }) => ({
    accountId,
    senderId,
    // The next day is another subject, because its recipients are others.
    subjectId: `${senderId} ${dayOf(now)}`,
    subject: externalId,
    detail: `${recipients} of ${limit} are used.`,
  }));
}

async function blockedLanes(deps: FactDeps): Promise<Fact[]> {
  if (deps.config.delivery !== "mx") return [];
  const blocked = (await readLanes(deps)).filter(({ state, title }) => state === "blocked" && title !== null);
  const facts = blocked.map(({ name, title, reply }) => ({
    subjectId: name,
    subject: title ?? name,
    detail: reply === null ? null : `The last reply was: ${reply}`,
  }));
  return ofInstallation(deps, facts.slice(0, MAX_FACTS));
}

async function lowDisk(deps: FactDeps): Promise<Fact[]> {
  const { read } = deps.space;
  if (read === null) return [];
  const { status, message } = diskFinding(read(), deps.config.minFreeBytes);
  return status === "ok"
    ? []
    : ofInstallation(deps, [{ subjectId: "disk", subject: "disk", detail: message }]);
}

async function oldBackup({ db, config }: FactDeps, now: number): Promise<Fact[]> {
  const { backupEvery: every } = config;
  const operator = every === 0 ? null : await operatorAccount(db);
  if (operator === null) return [];
  const last = await readFact(db, "backup");
  const ageMs = now - (last === null ? operator.createdAt : Number(last));
  if (ageMs <= every * LATE_BACKUPS) return [];
  const hours = `${Math.floor(ageMs / HOUR_MS)} hours`;
  const detail = last === null ? `None was made in ${hours}.` : `The last good one is ${hours} old.`;
  const fact = { accountId: operator.id, senderId: null, subjectId: "backup", subject: "backups" };
  return [{ ...fact, detail: `${detail} Look for \`backups\` in the log.` }];
}

async function failedMigrations(deps: FactDeps): Promise<Fact[]> {
  const failed = deps.failedMigration();
  if (failed === null) return [];
  return ofInstallation(deps, [
    { subjectId: failed.version, subject: failed.version, detail: `The error was: ${failed.error}` },
  ]);
}
