import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { type Db, openDb } from "../../src/store/engine/client.ts";
import { newFolder } from "../support/folder.ts";
import { until } from "../support/poll.ts";
import { callRole, type RoleProcess, startRole } from "../support/role-process.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(180_000);

const PRELOAD = join(import.meta.dir, "next-version.ts");
const KEY = "test-root-key-0123456789-0123456789";
const SENDS = 30;
const folder = newFolder("rolling");
const url = `file:${join(folder, "postrider.db")}`;

let db: Db;
const running: RoleProcess[] = [];
beforeAll(async () => {
  db = await openDb(systemClock, { url, authToken: null, syncUrl: null });
});
afterAll(async () => {
  await Promise.all(running.map((one) => one.kill()));
  await db.close();
});

async function start(version: "this" | "next"): Promise<RoleProcess> {
  const started = await startRole(
    { DATA_DIR: folder, ROOT_API_KEY: KEY, ROLES: "api,worker", DELIVERY: "capture", SCHEMA: version },
    PRELOAD,
  );
  running.push(started);
  return started;
}

async function send(at: RoleProcess): Promise<string> {
  const item = { from: "a@shop.example", to: "b@there.test", subject: "Hi", text: "x" };
  const { status, body } = await callRole(at, KEY, "POST", "/v1/emails", item);
  expect(status).toBe(202);
  return body.id;
}

async function delivered(at: RoleProcess, ids: readonly string[]): Promise<void> {
  for (const id of ids)
    await until(async () => (await callRole(at, KEY, "GET", `/v1/emails/${id}`)).body.status === "delivered");
}

/** Returns how many messages the fill and the trigger of the next version have not reached. */
async function unfilled(): Promise<number> {
  return (await db.first<{ n: number }>("SELECT count(*) AS n FROM messages WHERE made_on IS NULL"))?.n ?? -1;
}

test("processes of two versions run side by side, one after the other is replaced, and the way back works", async () => {
  const old = await start("this");
  const ids: string[] = [];
  let migrating = true;
  const sending = (async () => {
    while (migrating || ids.length < SENDS) ids.push(await send(old));
  })();
  const next = await start("next");
  migrating = false;
  await sending;
  expect(await unfilled()).toBe(0);

  // Each takes and reads what the other has taken.
  const both = [await send(old), await send(next)];
  await delivered(old, [...ids, ...both]);
  await delivered(next, both);
  expect(await unfilled()).toBe(0);
  expect(await old.terminate()).toBe(0);
  await delivered(next, [await send(next)]);

  const back = await start("this");
  expect(await next.terminate()).toBe(0);
  await delivered(back, [await send(back), ...both]);
  expect(await unfilled()).toBe(0);
  expect(await back.terminate()).toBe(0);
});

test("a process of the next version that is killed while it migrates is followed by one that completes it", async () => {
  await db.migrate([
    { sql: "DROP TRIGGER messages_made_on", args: [] },
    { sql: "ALTER TABLE messages DROP COLUMN made_on", args: [] },
    { sql: "DELETE FROM schema_migrations WHERE name = 'next'", args: [] },
  ]);

  const dying = Bun.spawn(
    [process.execPath, "--preload", PRELOAD, join(import.meta.dir, "../../src/main.ts"), "migrate"],
    {
      env: { PATH: Bun.env.PATH ?? "", DATA_DIR: folder, SCHEMA: "next" },
      stdout: "ignore",
      stderr: "ignore",
    },
  );
  await until(async () => (await db.first("SELECT 1 FROM schema_migrations WHERE name = 'next'")) !== null);
  dying.kill("SIGKILL");
  await dying.exited;
  const next = await start("next");
  expect(await unfilled()).toBe(0);
  const ledger = await db.first<{ filled_at: number | null }>(
    "SELECT filled_at FROM schema_migrations WHERE name = 'next'",
  );
  expect(ledger?.filled_at).not.toBeNull();
  expect(await next.terminate()).toBe(0);
});
