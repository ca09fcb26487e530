import { addressKey } from "../../core/addresses.ts";
import { requiredAddress } from "../../core/messages/address-input.ts";
import { type AppError, invalid, readAll } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import { limitsOf, overQuota, type Quotas } from "../../core/quotas.ts";
import { parseTime, TIME_EXPECTED } from "../../core/time/date-times.ts";
import { ConstraintError, type Db, type Statement } from "../../store/engine/client.ts";
import { holdingsOf, overQuotaIn, withinLimits } from "../../store/projects/holdings.ts";
import type { Project } from "../../store/projects/projects.ts";
import { addSuppression, findSuppressions, type Suppression } from "../../store/projects/suppressions.ts";

/** Maximum number of addresses in a batch. */
export const MAX_BATCH = 100;
/** Tries of an addition. It is repeated if another request adds the same address between its read and its write. */
const MAX_TRIES = 10;

/** Dependencies of adding entries by hand. */
export interface SuppressionDeps {
  db: Db;
  quotas: Quotas;
}

/** Returns an entry that a client adds, without note and end. */
export function manual(senderId: string, email: string, now: number): Suppression {
  return {
    id: newId("sup", now),
    senderId,
    email,
    reason: "manual",
    bounceType: null,
    messageId: null,
    note: null,
    expiresAt: null,
    createdAt: now,
  };
}

/** Returns the key of an address. Throws 422 if the text is not an address. */
function keyOf(email: string): string {
  return addressKey(requiredAddress(email, "email"));
}

/** Returns the expiry in milliseconds, or null if there is none. Throws 422 if it is not a time in the future. */
function expiryOf(text: string | null | undefined, now: number): number | null {
  if (text === null || text === undefined) return null;
  const at = parseTime(text);
  if (at === null) throw invalid("expiresAt", TIME_EXPECTED);
  if (at <= now) throw invalid("expiresAt", "must be a time in the future.");
  return at;
}

/** Returns the address key, empty if no address is given, and the expiry. Throws 422 with all issues. */
export function fieldsOf({ email, expiresAt }: { email?: string; expiresAt?: string | null }, now: number) {
  return readAll(
    () => (email === undefined ? "" : keyOf(email)),
    () => expiryOf(expiresAt, now),
  );
}

/** Entries by address key: existing ones and added ones. */
export interface Listed {
  stood: ReadonlyMap<string, Suppression>;
  added: ReadonlyMap<string, Suppression>;
  /** Why other addresses were not added. Null if all were. */
  refusal: AppError | null;
}

/** The request that adds entries. */
export interface Adding {
  senderId: string;
  project: Pick<Project, "plan">;
  now: number;
  /** Set if nothing is written: the number of entries that would have been added before. */
  preview?: number;
}

/**
 * Adds new addresses in order until the quota is reached.
 * @param record returns statements for the same write; it may throw, and then nothing is written
 */
export async function addSuppressions(
  { db, quotas }: SuppressionDeps,
  { senderId, project, now, preview }: Adding,
  wanted: ReadonlyMap<string, Suppression>,
  record: (listed: Listed) => readonly Statement[],
): Promise<Listed> {
  const limits = limitsOf(quotas, project.plan);
  for (let tries = 1; ; tries++) {
    const stood = await findSuppressions(db, senderId, [...wanted.keys()], now);
    const missing = [...wanted].filter(([email]) => !stood.has(email));
    const room = missing.length === 0 ? 0 : await roomFor(db, senderId, limits.suppressions, preview);
    const added = new Map(missing.slice(0, room));
    const refusal = added.size < missing.length ? overQuota("suppressions", limits.suppressions) : null;
    const listed = { stood, added, refusal };
    if (preview !== undefined) return listed;
    const recorded = record(listed);
    // If nothing is added, no limit applies, because bounces and complaints may exceed it.
    const checks = [
      ...(added.size === 0 ? [] : withinLimits(senderId, ["suppressions"], limits)),
      ...(added.size + recorded.length === 0 ? [] : withinLimits(senderId, ["storedOctets"], limits)),
    ];
    try {
      await db.write([...[...added.values()].flatMap(addSuppression), ...recorded, ...checks]);
      return listed;
    } catch (error) {
      const raced =
        overQuotaIn(error) === "suppressions" ||
        (error instanceof ConstraintError && error.unique?.startsWith("suppressions.") === true);
      if (!raced || tries === MAX_TRIES) throw error;
    }
  }
}

/** Returns how many more entries the project can add. */
async function roomFor(db: Db, senderId: string, limit: number | null, ahead = 0): Promise<number> {
  if (limit === null) return Number.POSITIVE_INFINITY;
  return Math.max(0, limit - ahead - (await holdingsOf(db, senderId)).suppressions);
}
