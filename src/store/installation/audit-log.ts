import type { Db, Statement, Value } from "../engine/client.ts";

type ChangedValue = string | number | boolean | null | string[] | Record<string, string | number | null>;

/** A change, as the audit trail has it. */
export interface AuditEntry {
  seq: number;
  /** Milliseconds. */
  at: number;
  actorType: "member" | "key" | "cli" | "service";
  actorId: string | null;
  actorName: string | null;
  ip: string | null;
  requestId: string | null;
  /** Noun and verb, such as `domain.create`. */
  action: string;
  targetType: string;
  targetId: string;
  targetName: string | null;
  senderId: string | null;
  /** The changed fields as [before, after]. */
  changes: Record<string, ChangedValue[]>;
}

/** A filter of changes. Times in milliseconds. */
export interface AuditFilter {
  /** Type or id of who made them. */
  actor?: string | undefined;
  action?: string | undefined;
  /** Type or id of what changed. */
  target?: string | undefined;
  senderId?: string | undefined;
  /** At or after. */
  after?: number | undefined;
  before?: number | undefined;
}

/** The place of a change in the list. */
export interface AuditPosition {
  at: number;
  seq: number;
}

const COLUMNS = `seq, at, actor_type AS actorType, actor_id AS actorId, actor_name AS actorName, ip,
  request_id AS requestId, action, target_type AS targetType, target_id AS targetId, target_name AS targetName,
  sender_id AS senderId, changes`;

type Condition = readonly [sql: string, value: Value | undefined];

/** Returns at most `take` changes of the account and of the installation that pass the filter, newest first, from a place on. */
export async function listAudit(
  db: Db,
  accountId: string,
  { actor, action, target, senderId, after, before }: AuditFilter,
  place: AuditPosition | null,
  take: number,
): Promise<AuditEntry[]> {
  const conditions: Condition[] = [
    ["(account_id = ? OR account_id IS NULL)", accountId],
    [actor?.includes("_") === true ? "actor_id = ?" : "actor_type = ?", actor],
    ["action = ?", action],
    // An id has an underscore and a nonce; the only types with an underscore have no digits.
    [target !== undefined && /\d/.test(target) ? "target_id = ?" : "target_type = ?", target],
    ["sender_id = ?", senderId],
    ["at >= ?", after],
    ["at < ?", before],
  ];
  const given = conditions.flatMap(([sql, value]) => (value === undefined ? [] : [{ sql, value }]));
  const rows = await db.all<StoredEntry>(
    `SELECT ${COLUMNS} FROM audit_log WHERE ${given.map(({ sql }) => sql).join(" AND ")}
      ${place === null ? "" : "AND (at, seq) < (?, ?)"} ORDER BY at DESC, seq DESC LIMIT ?`,
    [...given.map(({ value }) => value), ...(place === null ? [] : [place.at, place.seq]), take],
  );
  return rows.map(read);
}

/** Returns the changes with those numbers, oldest first. */
export async function auditEntries(db: Db, seqs: readonly number[]): Promise<AuditEntry[]> {
  const sql = `SELECT ${COLUMNS} FROM audit_log WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq`;
  return (await db.all<StoredEntry>(sql, [JSON.stringify(seqs)])).map(read);
}

type StoredEntry = Omit<AuditEntry, "changes"> & { changes: string };

function read(row: StoredEntry): AuditEntry {
  return { ...row, changes: JSON.parse(row.changes) };
}

/** A sign-in to the dashboard that was refused. It changes nothing, so no trigger sees it. */
export interface RefusedSignIn {
  /** Milliseconds. */
  at: number;
  how: "key" | "link" | "provider";
  reason: string;
  /** Address that the person claims, as `addressKey` spells it; null if it is unknown. */
  email: string | null;
  ip: string | null;
  requestId: string;
  /** Number of refused ones before it that are not in the trail. */
  leftOut: number;
}

/** Returns the statement that adds a refused sign-in to the trail. Its target is the member, if there is one with that address. */
export function refusedSignIn(refused: RefusedSignIn): Statement {
  const { at, how, reason, email, ip, requestId, leftOut } = refused;
  const facts = { how, reason, ...(leftOut === 0 ? {} : { leftOut }) };
  const changes = Object.fromEntries(Object.entries(facts).map(([name, fact]) => [name, [null, fact]]));
  return {
    sql: `INSERT INTO audit_log (account_id, at, actor_type, ip, request_id, action, target_type, target_id, target_name, changes)
      SELECT (SELECT account_id FROM members WHERE email = ?1), ?2, 'service', ?3, ?4, 'sign_in.refuse', 'sign_in',
        COALESCE((SELECT id FROM members WHERE email = ?1), ?4), ?1, ?5`,
    args: [email, at, ip, requestId, JSON.stringify(changes)],
  };
}

/** Deletes at most `limit` changes from before a time, oldest first. Returns how many. */
export async function deleteOldAudit(db: Db, before: number, limit: number): Promise<number> {
  const sql = `DELETE FROM audit_log WHERE seq IN (SELECT seq FROM audit_log WHERE at < ? ORDER BY at LIMIT ?)`;
  const [written] = await db.write([{ sql, args: [before, limit] }]);
  return written?.changes ?? 0;
}
