import type { QuotaLimits, Resource } from "../../core/quotas.ts";
import type { ConfigurationQuery, Db, Statement, Written } from "../engine/client.ts";
import { rowsStatement, rowsText } from "../sql/rows-text.ts";
import { isBroken } from "../engine/guards.ts";

/*
 * The numbers of each resource that a project or account holds. Triggers count in the write that adds or removes. The
 * last statement of that write compares the count with the limit. If it is over, the count becomes NULL, which the
 * column refuses, and the write is undone. So no order of writes, in any number of processes, passes a limit.
 */

/**
 * Returns the owner of what a message of the project stores: the project, or for captured mail a name without holdings, so
 * that it counts in no quota.
 */
export function holderOf(senderId: string, captured: boolean): string {
  return captured ? `captured ${senderId}` : senderId;
}

/** Amount of each resource. */
export type Holdings = Record<Resource, number>;

const COLUMNS = {
  storedOctets: "stored_octets",
  templates: "templates",
  webhooks: "webhooks",
  inboxes: "inboxes",
  domains: "domains",
  apiKeys: "api_keys",
  contacts: "contacts",
  suppressions: "suppressions",
} as const satisfies Record<Resource, string>;
const RESOURCES = Object.keys(COLUMNS) as Resource[];

/** The limit is a column, so that one statement compares the limits of all sends of a commit. */
const WITHIN_STORED = rowsText("holdings", "owner_id, bound", "(?1, ?2)", {
  after: ` ON CONFLICT (owner_id) DO UPDATE SET
    stored_octets = CASE WHEN holdings.stored_octets <= excluded.bound THEN holdings.stored_octets END`,
});

/**
 * Returns the statement that undoes a write that takes the project over its stored octets; none without a limit. It
 * can be joined with the statements of other sends. `overQuotaIn` recognises the error.
 */
export function withinStored(ownerId: string, limit: number | null): Statement[] {
  return limit === null ? [] : [rowsStatement(WITHIN_STORED, [ownerId, limit])];
}

/**
 * Returns the statements that undo a write over the limit of one of the resources. They must come last in the write.
 */
export function withinLimits(
  ownerId: string,
  resources: readonly Resource[],
  limits: QuotaLimits,
): Statement[] {
  return resources.flatMap((resource) => {
    const limit = limits[resource];
    const column = COLUMNS[resource];
    if (limit === null) return [];
    const sql = `UPDATE holdings SET ${column} = CASE WHEN ${column} <= ? THEN ${column} END WHERE owner_id = ?`;
    return [{ sql, args: [limit, ownerId] }];
  });
}

/** Limits what a change of rows adds to the project's stored octets: see `limitChange`. */
export type ChangeLimit = (change: Statement) => Statement[];

/** Leaves a change as it is, without a limit. */
export const NO_LIMIT: ChangeLimit = (change) => [change];

/** Returns the result of the change itself in a write that `limitChange` made. */
export function changeResult(written: readonly Written[]): Written | undefined {
  return written.length === 1 ? written[0] : written[1];
}

/**
 * Puts a change between two statements that undo it if it adds stored octets beyond the project's limit. A change that
 * adds nothing passes even over the limit.
 */
export function limitChange(ownerId: string, limit: number | null, change: Statement): Statement[] {
  if (limit === null) return [change];
  return [
    { sql: "UPDATE holdings SET octets_before = stored_octets WHERE owner_id = ?", args: [ownerId] },
    change,
    {
      sql: `UPDATE holdings SET stored_octets =
        CASE WHEN stored_octets <= MAX(?, octets_before) THEN stored_octets END WHERE owner_id = ?`,
      args: [limit, ownerId],
    },
  ];
}

/** Returns the resource whose limit undid a write; null if the write failed for another reason. */
export function overQuotaIn(error: unknown): Resource | null {
  return RESOURCES.find((resource) => isBroken(error, `over_${COLUMNS[resource]}`)) ?? null;
}

const LIST = Object.entries(COLUMNS)
  .map(([resource, column]) => `h.${column} AS ${resource}`)
  .join(", ");

const NOTHING: Holdings = {
  storedOctets: 0,
  templates: 0,
  webhooks: 0,
  inboxes: 0,
  domains: 0,
  apiKeys: 0,
  contacts: 0,
  suppressions: 0,
};

/** Returns the holdings of a project or account. */
export async function holdingsOf(db: Db, ownerId: string): Promise<Holdings> {
  const row = await db.first<Holdings>(`SELECT ${LIST} FROM holdings h WHERE h.owner_id = ?`, [ownerId]);
  return row ?? { ...NOTHING };
}

const PLAN: ConfigurationQuery<{ plan: string }, string> = {
  sql: "SELECT plan FROM senders WHERE id = ?",
  read: ({ plan }) => plan,
};

/** Returns the plan of a project; null if no project has that id. */
export function planOf(db: Db, senderId: string): Promise<string | null> {
  return db.readConfig(PLAN, [senderId]);
}

export interface Holder extends Holdings {
  accountId: string;
  senderId: string;
  externalId: string;
  plan: string;
}

/** Returns at most `most` projects, chosen by plan, that hold at least the given amount of any resource. */
export async function holdersNear(
  db: Db,
  plan: { only: string } | { except: readonly string[] },
  atLeast: QuotaLimits,
  most: number,
): Promise<Holder[]> {
  const bounds = Object.entries(COLUMNS).flatMap(([resource, column]) => {
    const bound = atLeast[resource as Resource];
    return bound === null ? [] : [{ sql: `h.${column} >= ?`, bound }];
  });
  if (bounds.length === 0) return [];
  const [which, names] =
    "only" in plan
      ? ["s.plan = ?", [plan.only]]
      : [`s.plan NOT IN (${plan.except.map(() => "?").join(", ")})`, [...plan.except]];
  return db.all<Holder>(
    `SELECT s.account_id AS accountId, s.id AS senderId, s.external_id AS externalId, s.plan, ${LIST} FROM holdings h JOIN senders s ON s.id = h.owner_id
      WHERE ${which} AND (${bounds.map(({ sql }) => sql).join(" OR ")}) ORDER BY s.id LIMIT ?`,
    [...names, ...bounds.map(({ bound }) => bound), most],
  );
}
