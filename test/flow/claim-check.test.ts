import { expect, test } from "bun:test";
import Database from "libsql";
import { claimCheck, SURE_MS } from "../../src/flows/send/claim-check.ts";
import type { Db } from "../../src/store/engine/client.ts";
import type { Claim } from "../../src/store/outbox.ts";
import { testDatabase } from "../support/database.ts";
import { manualClock } from "../support/manual-clock.ts";

const CLAIM: Claim = { messageId: "msg_1", ord: 0, instanceId: "ins_1", attempt: 1 };

/** A check of a claim taken now, against a database that answers so, and how often it was asked. */
function checked(held: () => Promise<unknown>) {
  const clock = manualClock();
  let asked = 0;
  const db: Pick<Db, "first" | "heard"> = {
    heard: () => undefined,
    async first<Row>() {
      asked++;
      return (await held()) as Row | null;
    },
  };
  return { clock, mayGo: claimCheck({ db: db as Db, clock }, CLAIM, clock.now()), asked: () => asked };
}

test("the database is asked only where a claim is old enough for others to have freed it, and not twice at once", async () => {
  const { clock, mayGo, asked } = checked(async () => ({ 1: 1 }));
  clock.advance(SURE_MS);
  expect(mayGo()).toBe(true);
  expect(asked()).toBe(0);
  clock.advance(1);
  expect(await mayGo()).toBe(true);
  expect(mayGo()).toBe(true);
  expect(asked()).toBe(1);
  clock.advance(SURE_MS + 1);
  expect(await mayGo()).toBe(true);
  expect(asked()).toBe(2);
});

test("a clock that was put back tells nothing of a claim's age", async () => {
  const { clock, mayGo, asked } = checked(async () => null);
  clock.step(-SURE_MS - 1);
  expect(await mayGo()).toBe(false);
  expect(asked()).toBe(1);
});

test("a mail does not go while nobody can tell whose it is", async () => {
  const { clock, mayGo } = checked(() => Promise.reject(new Error("out of reach")));
  clock.advance(SURE_MS + 1);
  expect(await mayGo()).toBe(false);
});

test("a claim that others have freed is not held, though what was read just before is of before that", async () => {
  const own = await testDatabase("file");
  const other = new Database(own.url.slice("file:".length), { timeout: 5000 });
  const clock = manualClock();
  try {
    other.exec(
      `PRAGMA foreign_keys = OFF;
        INSERT INTO recipients (message_id, ord, sender_id, email, domain, kind, status, claimed_by, attempts)
        VALUES ('msg_1', 0, 'snd_1', 'a@one.test', 'one.test', 'to', 'sending', 'ins_1', 1)`,
    );
    const mayGo = claimCheck({ db: own.db, clock }, CLAIM, clock.now());
    clock.advance(SURE_MS + 1);
    await new Promise((resolve) => setImmediate(resolve));
    // All that a turn of the event loop reads is of one moment.
    for (let reads = 0; reads < 2; reads++) await own.db.first("SELECT 1 FROM recipients");
    other.exec("UPDATE recipients SET claimed_by = NULL");
    expect(await mayGo()).toBe(false);
  } finally {
    other.close();
    await own.remove();
  }
});
