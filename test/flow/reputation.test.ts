import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { RecipientStatus } from "../../src/core/states.ts";
import { DAY_MS } from "../../src/core/time-units.ts";
import { countOutcome, type Outcome } from "../../src/flows/send/reputation.ts";
import type { Db, Statement } from "../../src/store/engine/client.ts";
import { findSender, insertSender } from "../../src/store/senders.ts";
import { utcDay } from "../../src/store/usage.ts";
import { testSender } from "../support/api.ts";
import { testDatabase } from "../support/database.ts";
import { startMx } from "../support/mx.ts";
import { startService, verifiedDomain } from "../support/service.ts";

const closing: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const NOW = 1_772_366_400_000;

/** Outcomes of a day before this one, of yesterday unless another is given. */
function past(
  id: string,
  settled: number,
  bounced: number,
  at = Date.now() - DAY_MS,
  complained = 0,
): Statement {
  return {
    sql: "INSERT INTO reputation (sender_id, day, settled, bounced, complained) VALUES (?, ?, ?, ?, ?)",
    args: [id, utcDay(at), settled, bounced, complained],
  };
}

test("bounces that reach 8 % suspend the sender until that is lifted, and not again by themselves", async () => {
  const relay = startMx({ answers: { RCPT: "550 5.1.1 No such user" } });
  closing.push(() => relay.stop());
  const service = await startService({ DELIVERY: "relay", SMTP_RELAY_URL: `smtp://127.0.0.1:${relay.port}` });
  closing.push(() => service.stop());
  await verifiedDomain(service, "sender.test");
  const options = { key: service.accountKey };
  const { id } = (await service.call("GET", "/v1/senders", undefined, options)).body.data[0];
  await service.app.db.write([past(id, 199, 15)]);
  const send = (to: string) =>
    service.call("POST", "/v1/emails", {
      ...{ from: { email: "news@sender.test" }, to: [{ email: to }], subject: "Hi", text: "x" },
    });
  const bounce = async (to: string): Promise<void> => {
    const sent = await send(to);
    expect(sent.status).toBe(202);
    await service.message(sent.body.id, "bounced");
  };
  const suspendedAt = async (): Promise<string | null> =>
    (await service.call("GET", `/v1/senders/${id}`, undefined, options)).body.suspendedAt;

  await bounce("a@one.test");
  expect(await suspendedAt()).toMatch(/Z$/);
  const refused = await send("b@one.test");
  expect(refused.status).toBe(403);
  expect(refused.body.error).toMatchObject({ type: "permission_error", code: "sender_suspended" });
  const lifted = await service.call("PATCH", `/v1/senders/${id}`, { suspendedAt: null }, options);
  expect(lifted.body.suspendedAt).toBeNull();
  await bounce("b@one.test");
  await bounce("c@one.test");
  expect(await suspendedAt()).toBeNull();
});

describe("a sender is suspended", () => {
  let db: Db;
  beforeEach(async () => {
    const database = await testDatabase();
    closing.push(database.remove);
    db = database.db;
    const sql =
      "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc_1', 'a', 'o@x.test', 1)";
    await db.write([{ sql, args: [] }]);
  });
  let names = 0;

  /** Whether a new sender is, where an outcome comes after what the statement stores. */
  async function suspendedBy(status: RecipientStatus, earlier: (id: string) => Statement): Promise<boolean> {
    const sender = testSender("acc_1", `shop ${++names}`, NOW);
    const guard = { sql: "1 = 1", args: [] };
    const recipient = { senderId: sender.id, status: "sending" as const };
    const counting = countOutcome({ recipient, status, uncounted: false, guard }, NOW);
    await db.write([insertSender(sender), earlier(sender.id), ...counting]);
    return (await findSender(db, sender.accountId, sender.id))?.suspendedAt === NOW;
  }

  test("for outcomes of seven days, the running one the last of them", async () => {
    const suspended = (daysAgo: number) =>
      suspendedBy("delivered", (id) => past(id, 200, 200, NOW - daysAgo * DAY_MS));
    expect([await suspended(6), await suspended(7)]).toEqual([true, false]);
    // As of a clock that was ahead.
    expect([await suspended(0), await suspended(-1)]).toEqual([true, false]);
  });

  test.each([
    ["8 % bounced of 200", "bounced", [199, 15, 0], true],
    ["8 % bounced of 199", "bounced", [198, 16, 0], false],
    ["less than 8 % bounced", "bounced", [200, 15, 0], false],
    ["0.3 % complained of 1000", "complained", [999, 0, 2], true],
    ["less than 0.3 % complained", "complained", [1000, 0, 2], false],
    ["one of 200 complained", "complained", [199, 0, 0], true],
    ["one of 199 complained", "complained", [198, 0, 0], false],
  ] as const)("for %s, by %s behind %p: %p", async (_, status, [settled, bounced, complained], is) => {
    const earlier = (id: string) => past(id, settled, bounced, NOW, complained);
    expect(await suspendedBy(status, earlier)).toBe(is);
  });
});

describe("what an outcome counts for", () => {
  const rows: readonly [
    from: Outcome["status"],
    to: Outcome["status"],
    counts: readonly number[] | null,
    simulated?: "simulated",
  ][] = [
    ["sending", "delivered", [1, 0, 0]],
    ["sending", "sent", [1, 0, 0]],
    ["sending", "bounced", [1, 1, 0]],
    ["sending", "failed", [1, 0, 0]],
    ["sending", "complained", [1, 0, 1]],
    ["delivery_delayed", "bounced", [1, 1, 0]],
    // Counted already when it was settled.
    ["sent", "bounced", [0, 1, 0]],
    ["delivered", "complained", [0, 0, 1]],
    ["delivered", "failed", [0, 0, 0]],
    ["sending", "delivery_delayed", null],
    ["sending", "rejected", null],
    ["sending", "rendering_failure", null],
    ["sending", "bounced", null, "simulated"],
    ["delivered", "complained", null, "simulated"],
  ];
  for (const [from, to, counts, simulated] of rows)
    test(`${simulated ?? "real"}, ${from} to ${to}: ${counts?.join(" ") ?? "nothing"}`, async () => {
      const { db, remove } = await testDatabase();
      closing.push(remove);
      const recipient = { senderId: "snd", status: from };
      const outcome = {
        recipient,
        status: to,
        uncounted: simulated !== undefined,
        guard: { sql: "1 = 1", args: [] },
      };
      await db.write(countOutcome(outcome, NOW));
      const row = await db.first<Record<string, number>>(
        "SELECT settled, bounced, complained FROM reputation WHERE sender_id = 'snd'",
      );
      expect(row === null ? null : Object.values(row)).toEqual(counts === null ? null : [...counts]);
    });
});
