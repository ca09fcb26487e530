import { expect, test } from "bun:test";
import { claimCheck, SURE_MS } from "../../src/flows/send/claim-check.ts";
import type { Db } from "../../src/store/engine/client.ts";
import type { Claim } from "../../src/store/outbox.ts";
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
