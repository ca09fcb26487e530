import { type Client, createClient } from "@libsql/client";
import { systemClock } from "../../src/clock.ts";
import { type Db, openDb } from "../../src/store/engine/client.ts";

const TABLE = "CREATE TABLE mails (id TEXT PRIMARY KEY, body BLOB NOT NULL) STRICT";
const INSERT = "INSERT INTO mails (id, body) VALUES (?, ?)";

/** Stores one row durably. */
export type Store = (body: string | Uint8Array) => Promise<string>;

/** Stores one row per writer in a group commit, with the service's own database code. */
export async function groupCommitStore(file: string): Promise<Store> {
  const db: Db = await openDb(systemClock, { url: `file:${file}`, authToken: null, syncUrl: null });
  await db.migrate([{ sql: TABLE, args: [] }]);
  return async (body) => {
    const id = Bun.randomUUIDv7();
    await db.write([{ sql: INSERT, args: [id, typeof body === "string" ? Buffer.from(body) : body] }]);
    return id;
  };
}

/** Stores one row in one commit, as durable as the service's. */
export async function singleCommitStore(file: string): Promise<Store> {
  const client: Client = createClient({ url: `file:${file}`, concurrency: 1 });
  for (const sql of ["PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", TABLE])
    await client.execute(sql);
  return async (body) => {
    const id = Bun.randomUUIDv7();
    await client.execute({ sql: INSERT, args: [id, typeof body === "string" ? Buffer.from(body) : body] });
    return id;
  };
}
