import { afterEach, beforeEach, expect, test } from "bun:test";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";

const POLL_MS = 2;
/** A quick lookup, then two slow ones. */
const QUESTIONS_A_LOOK = 3;

let service: TestService;

beforeEach(async () => {
  service = await startService({ DELIVERY: "mx" });
  await verifiedDomain(service, "sender.test");
  service.dns.behave("servfail", "out.test");
});
afterEach(() => service.stop());

const send = () => service.send({ from: "news@sender.test", to: "a@out.test" });

test("mail without a route is claimed and put off in one write, and if that fails, it stays due", async () => {
  const { db } = service.app;
  await db.write([
    {
      sql: `CREATE TRIGGER full BEFORE INSERT ON attempts BEGIN SELECT RAISE(ABORT, 'full'); END`,
      args: [],
    },
  ]);
  const id = await send();
  // Each try looks the domain up first, so once a second lookup has begun, the first try has ended.
  while (service.dns.count("out.test", "MX") <= QUESTIONS_A_LOOK) await Bun.sleep(POLL_MS);
  const state = await db.first(
    "SELECT status, attempts, due_at IS NOT NULL AS due FROM recipients WHERE message_id = ?",
    [id],
  );
  expect(state).toEqual({ status: "queued", attempts: 0, due: 1 });
  await db.write([{ sql: "DROP TRIGGER full", args: [] }]);
  const record = await service.message(id, "delivery_delayed");
  expect(record.events.map(({ type }: { type: string }) => type)).toEqual([
    "accepted",
    "queued",
    "sending",
    "delivery_delayed",
  ]);
  expect(record.recipients).toMatchObject([{ status: "delivery_delayed", attempts: 1 }]);
});
