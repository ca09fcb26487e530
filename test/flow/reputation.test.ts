import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { RecipientStatus } from "../../src/core/messages/states.ts";
import { DAY_MS } from "../../src/core/time/units.ts";
import { countOutcome, limitsOf, type Outcome } from "../../src/flows/deliver/reputation.ts";
import { type Db, firstReturned, type Statement } from "../../src/store/engine/client.ts";
import { nearSuspension, type ReputationLimits } from "../../src/store/projects/reputation.ts";
import {
  findProject,
  insertProject,
  type Project,
  updateProject,
} from "../../src/store/projects/projects.ts";
import { utcDay } from "../../src/store/projects/usage.ts";
import { testSender } from "../support/api.ts";
import { testDatabase } from "../support/database.ts";
import { startMx } from "../support/mx.ts";
import { startService, verifiedDomain } from "../support/service.ts";

const closing: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const NOW = 1_772_366_400_000;

/** Outcomes of an earlier day, of yesterday unless another is given. */
function past(id: string, settled: number, bounced: number, at = Date.now() - DAY_MS): Statement {
  return {
    sql: "INSERT INTO reputation (sender_id, day, settled, bounced) VALUES (?, ?, ?, ?)",
    args: [id, utcDay(at), settled, bounced],
  };
}

test("if bounces reach 8 %, the sender is suspended until that is lifted, and not again for the same bounces", async () => {
  const relay = startMx({ answers: { RCPT: "550 5.1.1 No such user" } });
  closing.push(() => relay.stop());
  const service = await startService({ DELIVERY: "relay", SMTP_RELAY_URL: `smtp://127.0.0.1:${relay.port}` });
  closing.push(() => service.stop());
  await verifiedDomain(service, "sender.test");
  const options = { key: service.accountKey };
  const { id } = (await service.call("GET", "/v1/senders", undefined, options)).body.data[0];
  await service.call("PATCH", `/v1/senders/${id}`, { trustTier: "basic" }, options);
  await service.app.db.write([past(id, 199, 15)]);
  const send = (to: string) =>
    service.call("POST", "/v1/emails", {
      from: { email: "news@sender.test" },
      to: [{ email: to }],
      subject: "Hi",
      text: "x",
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

describe("a sender", () => {
  let db: Db;
  beforeEach(async () => {
    const database = await testDatabase();
    closing.push(database.remove);
    db = database.db;
    const sql =
      "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc_1', 'a', 'o@x.test', 1)";
    await db.write([{ sql, args: [] }]);
  });
  const guard = { sql: "1 = 1", args: [] };
  let names = 0;

  async function newSender(trustTier = "basic"): Promise<Project> {
    const sender = { ...testSender("acc_1", `shop ${++names}`, NOW), trustTier };
    await db.write([insertProject(sender)]);
    return sender;
  }

  /** Counts an outcome; returns what the judgement of it found. */
  async function outcome(
    senderId: string,
    from: RecipientStatus,
    status: RecipientStatus,
    more: { complainant?: string; at?: number; excused?: boolean; limits?: ReputationLimits } = {},
  ): Promise<"suspended" | "near" | null> {
    const { complainant = null, at = NOW, excused = false, limits = limitsOf(5) } = more;
    const counting = countOutcome(
      {
        recipient: { senderId, status: from },
        status,
        mx: null,
        uncounted: false,
        excused,
        complainant,
        guard,
      },
      limits,
      at,
    );
    const row = firstReturned<{ suspended_at: number | null }>((await db.write(counting)).at(-1));
    if (row === null) return null;
    return row.suspended_at === at ? "suspended" : "near";
  }

  const complain = (senderId: string, complainant: string, at = NOW) =>
    outcome(senderId, "delivered", "complained", { complainant, at });

  const isSuspended = async ({ id, accountId }: Project) =>
    (await findProject(db, accountId, id))?.suspendedAt === NOW;

  test("a sender is suspended for outcomes of seven days, today the last of them", async () => {
    const suspended = async (daysAgo: number) => {
      const sender = await newSender();
      await db.write([past(sender.id, 200, 200, NOW - daysAgo * DAY_MS)]);
      await outcome(sender.id, "sending", "delivered");
      return isSuspended(sender);
    };
    expect([await suspended(6), await suspended(7)]).toEqual([true, false]);
    // From a clock that was ahead.
    expect([await suspended(0), await suspended(-1)]).toEqual([true, false]);
  });

  test.each([
    ["8 % bounced of 200", [199, 15], "suspended"],
    ["8 % bounced of 199", [198, 16], "near"],
    ["less than 8 % bounced", [200, 15], "near"],
    ["half of 8 % bounced, of half of 200", [99, 3], "near"],
    ["half of 8 % bounced, of less than half of 200", [98, 3], null],
    ["less than half of 8 % bounced", [200, 7], null],
  ] as const)("by a bounce with %s", async (_, [settled, bounced], found) => {
    const sender = await newSender();
    await db.write([past(sender.id, settled, bounced, NOW)]);
    expect(await outcome(sender.id, "sending", "bounced")).toBe(found);
  });

  test.each([
    ["5 recipients of 200", 200, 5, "suspended"],
    ["5 recipients of 1666: 0.3 %", 1666, 5, "suspended"],
    ["5 recipients of 1667: less than 0.3 %", 1667, 5, "near"],
    ["4 recipients of 200: one too few", 200, 4, "near"],
    ["5 recipients of 199: too few to draw a rate", 199, 5, "near"],
    ["3 recipients of 99: half of the number", 99, 3, "near"],
    ["2 recipients of 99: less than half of any number", 99, 2, null],
    ["1 recipient of 100: half of the recipients, and half of the rate", 100, 1, "near"],
    ["3 recipients of 2000: half of the rate", 2000, 3, "near"],
    ["3 recipients of 2001: less than half of the rate", 2001, 3, null],
  ] as const)("by the last of the complaints of %s", async (_, settled, complaints, found) => {
    const sender = await newSender();
    await db.write([past(sender.id, settled, 0, NOW)]);
    for (let at = 1; at < complaints; at++) await complain(sender.id, `r${at}@one.test`);
    // So that the last one tells of it again.
    await db.write([{ sql: "UPDATE senders SET warned_at = NULL", args: [] }]);
    expect(await complain(sender.id, "last@one.test")).toBe(found);
  });

  test("a sender is not suspended by soft bounces, nor by those of a lane that is not steady", async () => {
    const sender = await newSender();
    for (let bounce = 0; bounce < 200; bounce++)
      expect(await outcome(sender.id, "sending", "bounced", { excused: true })).toBeNull();
  });

  test("a sender of the tier unlimited is warned and never suspended", async () => {
    const sender = await newSender("unlimited");
    await db.write([past(sender.id, 200, 200, NOW)]);
    expect(await outcome(sender.id, "sending", "bounced")).toBe("near");
    expect(await isSuspended(sender)).toBe(false);
    expect(await nearSuspension(db, limitsOf(5), NOW, 10)).toHaveLength(1);
  });

  test("a sender is suspended by the rates of the settings, and by none that is 0", async () => {
    const bounced = async (limits: ReputationLimits) => {
      const sender = await newSender();
      await db.write([past(sender.id, 199, 3, NOW)]);
      return outcome(sender.id, "sending", "bounced", { limits });
    };
    expect(await bounced(limitsOf(5, 2))).toBe("suspended");
    expect(await bounced(limitsOf(5, 2.01))).toBe("near");
    expect(await bounced(limitsOf(5, 0))).toBeNull();
    const sender = await newSender();
    await db.write([past(sender.id, 200, 0, NOW)]);
    const limits = limitsOf(1, 8, 0);
    const complained = { complainant: "one@one.test", limits };
    expect(await outcome(sender.id, "delivered", "complained", complained)).toBeNull();
  });

  const counted = async (senderId: string) =>
    (
      await db.first<{ count: number }>(
        "SELECT SUM(complainants) AS count FROM reputation WHERE sender_id = ?",
        [senderId],
      )
    )?.count;

  test("a sender is not suspended by one recipient's complaints, however many: each counts once in seven days", async () => {
    const sender = await newSender();
    await db.write([past(sender.id, 200, 0, NOW)]);
    for (let at = 0; at < 20; at++) await complain(sender.id, "one@one.test");
    expect([await isSuspended(sender), await counted(sender.id)]).toEqual([false, 1]);
    await complain(sender.id, "one@one.test", NOW + 6 * DAY_MS);
    expect(await counted(sender.id)).toBe(1);
    await complain(sender.id, "one@one.test", NOW + 7 * DAY_MS);
    expect(await counted(sender.id)).toBe(2);
  });

  test("a sender is not suspended by complaints that nothing proves", async () => {
    const sender = await newSender();
    await db.write([past(sender.id, 200, 0, NOW)]);
    for (let at = 0; at < 20; at++) expect(await outcome(sender.id, "delivered", "complained")).toBeNull();
  });

  test("near suspension is warned of once a day, and counted by the health check while it is near", async () => {
    const sender = await newSender();
    const near = async (at: number) => (await nearSuspension(db, limitsOf(5), at, 10)).length;
    await db.write([past(sender.id, 199, 10, NOW)]);
    expect(await near(NOW)).toBe(0);
    const deliver = (at: number) => outcome(sender.id, "sending", "delivered", { at });
    expect([await deliver(NOW), await deliver(NOW + DAY_MS - 1), await deliver(NOW + DAY_MS)]).toEqual([
      "near",
      null,
      "near",
    ]);
    expect([await near(NOW + DAY_MS), await near(NOW + 7 * DAY_MS)]).toEqual([1, 0]);
  });

  test("a sender whose suspension is lifted begins with no complaint", async () => {
    const sender = await newSender();
    await db.write([past(sender.id, 200, 0, NOW)]);
    for (let at = 0; at < 5; at++) await complain(sender.id, `r${at}@one.test`);
    expect(await isSuspended(sender)).toBe(true);
    await updateProject(db, sender.accountId, sender.id, { suspendedAt: null });
    await complain(sender.id, "r0@one.test");
    expect(await counted(sender.id)).toBe(1);
  });
});

describe("the counts of an outcome", () => {
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
        mx: null,
        uncounted: simulated !== undefined,
        guard: { sql: "1 = 1", args: [] },
      };
      await db.write(countOutcome(outcome, limitsOf(5), NOW));
      const row = await db.first<Record<string, number>>(
        "SELECT settled, bounced, complained FROM reputation WHERE sender_id = 'snd'",
      );
      expect(row === null ? null : Object.values(row)).toEqual(counts === null ? null : [...counts]);
    });
});
