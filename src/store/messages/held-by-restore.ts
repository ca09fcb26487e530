import type { Db, Statement } from "../engine/client.ts";
import { freeClaims, rollUpMessage } from "./outbox.ts";
import { freeDeliveryClaims } from "../webhooks/webhook-deliveries.ts";
import { listInstances } from "../installation/instances.ts";

/**
 * Added to the due time of what a restore holds, milliseconds: some 31 700 years. So it is never due, and the time at which
 * it would have been due is not lost.
 */
export const HELD_MS = 1e15;

/** A time after all at which something may be due, milliseconds. */
export const AFTER_ALL = 8.64e15 - HELD_MS;

/** Rows of one step. */
const STEP = 500;
/** Reason of recipients that `release-held --drop` ends. */
const DROPPED = "dropped_after_restore";

/** Why a broadcast is paused after a restore. */
const RESTORED = {
  code: "restored",
  message:
    "A backup was restored. If messages were sent after it was made, their contacts would get a second one.",
};

/** What is held, and from when on it was due, milliseconds. */
export interface Held {
  recipients: number;
  pushes: number;
  firstDueAt: number | null;
  lastDueAt: number | null;
}

/** Each table with the condition that lets SQLite read it by the index of due rows. */
const TABLES = {
  recipients: { key: "message_id, ord", indexes: ["status <> 'accepted'", "status = 'accepted'"] },
  webhook_deliveries: { key: "id", indexes: ["TRUE"] },
} as const;
type Table = keyof typeof TABLES;

/**
 * Holds everything that is due, now or later, in a database that no process serves. Work in progress of the copied
 * database's processes is held, too.
 */
export async function holdAll(db: Db, now: number): Promise<void> {
  const instances = await listInstances(db);
  await db.write([
    ...instances.flatMap(({ id }) => [...freeClaims(id, now), freeDeliveryClaims(id, now)]),
    { sql: "DELETE FROM instances", args: [] },
    // Its messages may have gone further than the backup knows.
    {
      sql: `UPDATE broadcasts SET status = 'paused', problem = ? WHERE status IN ('scheduled', 'sending')`,
      args: [JSON.stringify(RESTORED)],
    },
    ...Object.keys(TABLES).map((table) => ({
      sql: `UPDATE ${table} SET due_at = due_at + ?1 WHERE due_at < ?1`,
      args: [HELD_MS],
    })),
  ]);
}

/** Counts what is held and was due before a time. Reads only the index of due rows, because health asks often. */
export async function countHeld(db: Db, before: number): Promise<Held> {
  const rows = (Object.keys(TABLES) as Table[]).flatMap((table) =>
    TABLES[table].indexes.map(async (index) => {
      const found = await db.first<{ count: number; first: number | null; last: number | null }>(
        `SELECT COUNT(*) AS count, MIN(due_at) AS first, MAX(due_at) AS last FROM ${table}
          WHERE due_at >= ?1 AND due_at < ?1 + ?2 AND ${index}`,
        [HELD_MS, before],
      );
      return { table, count: found?.count ?? 0, times: [found?.first ?? [], found?.last ?? []].flat() };
    }),
  );
  const counts = await Promise.all(rows);
  const inTable = (wanted: Table): number =>
    counts.reduce((sum, { table, count }) => sum + (table === wanted ? count : 0), 0);
  const times = counts.flatMap((row) => row.times).map((at) => at - HELD_MS);
  return {
    recipients: inTable("recipients"),
    pushes: inTable("webhook_deliveries"),
    firstDueAt: times.length === 0 ? null : Math.min(...times),
    lastDueAt: times.length === 0 ? null : Math.max(...times),
  };
}

/** Lets what was due before a time go, at its own time, in steps between which others write. */
export async function releaseHeld(db: Db, before: number): Promise<void> {
  for (const table of Object.keys(TABLES) as Table[])
    await each(db, table, before, (some) => [
      { sql: `UPDATE ${table} SET due_at = due_at - ? WHERE ${some.sql}`, args: [HELD_MS, ...some.args] },
    ]);
}

/** Ends what was due before a time: recipients are `failed`, pushes are given up. Announces nothing. */
export async function dropHeld(db: Db, before: number, now: number): Promise<void> {
  await each(db, "recipients", before, (some, keys) => [
    {
      sql: `UPDATE recipients SET status = 'failed', reason = ?, due_at = NULL, last_event_at = ? WHERE ${some.sql}`,
      args: [DROPPED, now, ...some.args],
    },
    ...[...new Set(keys.map(([messageId]) => String(messageId)))].map((id) => rollUpMessage(id, null)),
  ]);
  await each(db, "webhook_deliveries", before, (some) => [
    {
      sql: `UPDATE webhook_deliveries SET status = 'failed', due_at = NULL, last_error = ? WHERE ${some.sql}`,
      args: [DROPPED, ...some.args],
    },
  ]);
}

type Key = readonly (string | number)[];

/** Writes in steps until no held row is left. */
async function each(
  db: Db,
  table: Table,
  before: number,
  change: (some: Statement, keys: readonly Key[]) => Statement[],
): Promise<void> {
  const { key, indexes } = TABLES[table];
  for (const index of indexes)
    for (;;) {
      const rows = await db.all<Record<string, string | number>>(
        `SELECT ${key} FROM ${table} WHERE due_at >= ?1 AND due_at < ?1 + ?2 AND ${index} ORDER BY due_at LIMIT ${STEP}`,
        [HELD_MS, before],
      );
      if (rows.length === 0) break;
      const keys = rows.map((row) => key.split(", ").map((column) => row[column] ?? ""));
      const sql = `(${key}) IN (SELECT ${key
        .split(", ")
        .map((_, at) => `value ->> ${at}`)
        .join(", ")} FROM json_each(?))`;
      await db.write(change({ sql, args: [JSON.stringify(keys)] }, keys));
    }
}
