import { expect, test } from "bun:test";
import Database from "libsql";
import { claimCheck, TRUSTED_MS } from "../../src/flows/deliver/claim-check.ts";
import type { Db } from "../../src/store/engine/client.ts";
import type { Claim } from "../../src/store/messages/outbox.ts";
import { testDatabase } from "../support/database.ts";
import { manualClock } from "../support/manual-clock.ts";

const CLAIM: Claim = { messageId: "msg_1", ord: 0, instanceId: "ins_1", attempt: 1 };

/** A check of a claim taken now, with a database that answers as given, and a count of its queries. */
function checked(held: () => Promise<unknown>) {
  const clock = manualClock();
  let asked = 0;
  const db: Pick<Db, "first" | "refreshReads"> = {
    refreshReads: () => undefined,
    async first<Row>() {
      asked++;
      return (await held()) as Row | null;
    },
  };
  return { clock, mayGo: claimCheck({ db: db as Db, clock }, CLAIM, clock.now()), asked: () => asked };
}

test("the database is queried only if a claim is old enough to have been freed, and not twice at once", async () => {
  const { clock, mayGo, asked } = checked(async () => ({ 1: 1 }));
  clock.advance(TRUSTED_MS);
  expect(mayGo()).toBe(true);
  expect(asked()).toBe(0);
  clock.advance(1);
  expect(await mayGo()).toBe(true);
  expect(mayGo()).toBe(true);
  expect(asked()).toBe(1);
  clock.advance(TRUSTED_MS + 1);
  expect(await mayGo()).toBe(true);
  expect(asked()).toBe(2);
});

test("setting the clock back does not change a claim's age", async () => {
  const { clock, mayGo, asked } = checked(async () => null);
  clock.step(-TRUSTED_MS - 1);
  expect(await mayGo()).toBe(false);
  expect(asked()).toBe(1);
});

test("a message is not sent while its claim cannot be checked", async () => {
  const { clock, mayGo } = checked(() => Promise.reject(new Error("out of reach")));
  clock.advance(TRUSTED_MS + 1);
  expect(await mayGo()).toBe(false);
});

test("a claim that another process freed is not held, even if a read just before is older than that", async () => {
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
    clock.advance(TRUSTED_MS + 1);
    await new Promise((resolve) => setImmediate(resolve));
    // All reads of one event loop turn see one moment.
    for (let reads = 0; reads < 2; reads++) await own.db.first("SELECT 1 FROM recipients");
    other.exec("UPDATE recipients SET claimed_by = NULL");
    expect(await mayGo()).toBe(false);
  } finally {
    other.close();
    await own.remove();
  }
});
