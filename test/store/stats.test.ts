import { afterEach, beforeEach, describe, expect } from "bun:test";
import { medianSeconds, readStats } from "../../src/flows/read/stats.ts";
import type { Db, Statement } from "../../src/store/engine/client.ts";
import { insertRecipients } from "../../src/store/messages/recipients.ts";
import { deliveryDurations } from "../../src/store/projects/stats.ts";
import { test } from "../support/engine-test.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** A midnight. */
const NOW = 20_000 * DAY_MS;
const SENDER = "snd_1";
/** The limit in the migration. */
const DOMAINS_A_DAY = 1000;

let base: TestDatabase;

async function project(db: Db): Promise<void> {
  await db.write([
    {
      sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc', 'a', 'a@a.test', 1)",
      args: [],
    },
    {
      sql: `INSERT INTO senders (id, account_id, external_id, name, plan, trust_tier, created_at)
        VALUES (?, 'acc', 'a', 'a', 'p', 't', 1)`,
      args: [SENDER],
    },
  ]);
}

interface Mail {
  id: string;
  domain: string;
  at?: number;
  scheduledAt?: number | null;
}

/** A message with one recipient that a worker has claimed. */
function taken({ id, domain, at = NOW, scheduledAt = null }: Mail): Statement[] {
  const recipient = { ord: 0, email: `a@${domain}`, domain, kind: "to", reason: null, dueAt: at } as const;
  return [
    {
      sql: `INSERT INTO messages (id, sender_id, direction, status, from_email, to_list, subject, scheduled_at, created_at)
        VALUES (?, ?, 'outbound', 'queued', 'f@f.test', '[]', '', ?, ?)`,
      args: [id, SENDER, scheduledAt, at],
    },
    insertRecipients(SENDER, id, [{ ...recipient, status: "queued" }], at),
    moved(id, "sending", at),
  ];
}

function moved(id: string, status: string, at: number, holds = true): Statement {
  return {
    sql: "UPDATE recipients SET status = ?, last_event_at = ? WHERE message_id = ? AND ?",
    args: [status, at, id, Number(holds)],
  };
}

const week = (db: Db) => readStats(db, SENDER, "day", { from: NOW - 6 * DAY_MS, to: NOW + 1 });

describe("figures", () => {
  beforeEach(async () => {
    base = await testDatabase();
    await project(base.db);
  });
  afterEach(() => base.remove());

  test("a recipient counts in its new state, in the hour of the change, and only after a real change", async () => {
    const { db } = base;
    await db.write(taken({ id: "m1", domain: "one.test" }));
    await db.write([moved("m1", "delivered", NOW + HOUR_MS, false)]);
    await db.write([moved("m1", "delivery_delayed", NOW + 1)]);
    await db.write([moved("m1", "sending", NOW + 2)]);
    await db.write([moved("m1", "delivered", NOW + HOUR_MS)]);
    // A repeated report changes nothing.
    await db.write([moved("m1", "delivered", NOW + HOUR_MS)]);
    await db.write([moved("m1", "bounced", NOW + 2 * HOUR_MS)]);
    const stats = await readStats(db, SENDER, "hour", { from: NOW, to: NOW + 3 * HOUR_MS });
    expect(
      stats.data.map(({ accepted, delayed, delivered, bounced }) => [accepted, delayed, delivered, bounced]),
    ).toEqual([
      [1, 1, 0, 0],
      [0, 0, 1, 0],
      [0, 0, 0, 1],
    ]);
    expect(stats.totals).toMatchObject({ accepted: 1, delayed: 1, delivered: 1, bounced: 1, failed: 0 });
    expect(stats.byDestination).toMatchObject([{ domain: "one.test", delayed: 1, delivered: 1, bounced: 1 }]);
    expect((await readStats(db, "snd_2", "hour", { from: NOW, to: NOW + 3 * HOUR_MS })).totals.accepted).toBe(
      0,
    );
  });

  test("every state that a worker or a report can set has its figure", async () => {
    const { db } = base;
    const states = {
      sent: "sent",
      delivered: "delivered",
      delivery_delayed: "delayed",
      bounced: "bounced",
      complained: "complained",
      rejected: "rejected",
      failed: "failed",
      rendering_failure: "failed",
    };
    for (const state of Object.keys(states))
      await db.write([...taken({ id: state, domain: "x.test" }), moved(state, state, NOW)]);
    const { totals } = await week(db);
    // A complaint without an earlier delivery is simulated, and counts as both at once.
    expect(totals).toEqual({
      accepted: 8,
      sent: 1,
      delivered: 2,
      delayed: 1,
      bounced: 1,
      complained: 1,
      rejected: 1,
      failed: 2,
      opened: 0,
      clicked: 0,
      received: 0,
    });
  });

  test("figures stay when the message is removed", async () => {
    const { db } = base;
    await db.write([...taken({ id: "m1", domain: "one.test" }), moved("m1", "delivered", NOW)]);
    const before = await week(db);
    expect(before.totals.delivered).toBe(1);
    await db.write([{ sql: "DELETE FROM messages", args: [] }]);
    expect(await week(db)).toEqual(before);
  });

  test(`the ${DOMAINS_A_DAY + 1}st domain of a day is "other", and known ones keep their names`, async () => {
    const { db } = base;
    const send = async (id: string, domain: string, at = NOW) =>
      db.write([...taken({ id, domain, at }), moved(id, "delivered", at)]);
    await send("first", "first.test");
    for (let from = 1; from < DOMAINS_A_DAY; from += 111)
      await db.write(
        Array.from({ length: Math.min(111, DOMAINS_A_DAY - from) }, (_, at) => `d${from + at}`).flatMap(
          (id) => [...taken({ id, domain: `${id}.test` }), moved(id, "delivered", NOW)],
        ),
      );
    const domains = async () =>
      (await db.first<{ n: number }>("SELECT COUNT(DISTINCT domain) AS n FROM stats_destinations"))?.n;
    expect(await domains()).toBe(DOMAINS_A_DAY);
    await send("over", "over.test");
    await send("over again", "another.test", NOW + 5000);
    await send("first again", "first.test");
    expect(await domains()).toBe(DOMAINS_A_DAY + 1);
    const { byDestination } = await week(db);
    expect(byDestination).toHaveLength(50);
    expect(byDestination.slice(0, 2)).toMatchObject([
      { domain: "first.test", delivered: 2 },
      { domain: "other", delivered: 2 },
    ]);
    // The next day starts at zero.
    await send("tomorrow", "over.test", NOW + DAY_MS);
    const tomorrow = await readStats(db, SENDER, "day", { from: NOW + DAY_MS, to: NOW + DAY_MS + 1 });
    expect(tomorrow.byDestination).toMatchObject([{ domain: "over.test", delivered: 1 }]);
  });

  test("destinations of more than 400 days ago are removed when new ones come", async () => {
    const { db } = base;
    const days = async () =>
      (await db.all<{ day: number }>("SELECT DISTINCT day FROM stats_destinations ORDER BY day")).map(
        ({ day }) => day,
      );
    for (const [id, ago] of [
      ["a", 401],
      ["b", 400],
      ["c", 0],
    ] as const) {
      const at = NOW - ago * DAY_MS;
      await db.write([...taken({ id, domain: "one.test", at }), moved(id, "delivered", at)]);
    }
    expect(await days()).toEqual([19_600, 20_000]);
    expect(
      (await readStats(db, SENDER, "day", { from: NOW - 401 * DAY_MS, to: NOW - 400 * DAY_MS })).totals
        .delivered,
    ).toBe(1);
  });
});

describe("the time that deliveries took", () => {
  beforeEach(async () => {
    base = await testDatabase();
    await project(base.db);
  });
  afterEach(() => base.remove());

  test("the time that deliveries took counts from acceptance, or from the scheduled time", async () => {
    const { db } = base;
    const sent = async (id: string, domain: string, scheduledAt: number | null) =>
      db.write([...taken({ id, domain, scheduledAt }), moved(id, "delivered", NOW + HOUR_MS)]);
    await sent("m1", "now.test", null);
    await sent("m2", "later.test", NOW + HOUR_MS - 1000);
    // The clock was set back between the two.
    await sent("m3", "back.test", NOW + 2 * HOUR_MS);
    const { byDestination } = await readStats(db, SENDER, "day", { from: NOW, to: NOW + 1 });
    const median = (domain: string) =>
      byDestination.find((each) => each.domain === domain)?.medianSeconds ?? -1;
    expect(Math.abs(median("now.test") / 3600 - 1)).toBeLessThan(0.11);
    expect(Math.abs(median("later.test") - 1)).toBeLessThan(0.11);
    expect(median("back.test")).toBeLessThan(0.011);
  });

  test("a median is at most a tenth off, from a fifth of a second to three days, and at most a year", async () => {
    const { db } = base;
    const times = [
      200,
      333,
      1000,
      1999,
      7_654,
      60_000,
      123_456,
      3_600_000,
      40_000_000,
      259_200_000,
      2 * 366 * DAY_MS,
    ];
    for (const [at, time] of times.entries()) {
      const id = `m${at}`;
      await db.write([...taken({ id, domain: `d${at}.test`, at: NOW - time }), moved(id, "delivered", NOW)]);
    }
    const names = times.map((_time, at) => `d${at}.test`);
    const durations = await deliveryDurations(db, SENDER, names, 20_000, 20_000);
    expect(durations).toHaveLength(times.length);
    for (const [at, time] of times.entries()) {
      const own = durations.filter(({ domain }) => domain === `d${at}.test`);
      const off = ((medianSeconds(own) ?? 0) * 1000) / Math.min(time, 366 * DAY_MS) - 1;
      expect(Math.abs(off)).toBeLessThan(at === times.length - 1 ? 0.2 : 0.105);
    }
  });

  test.each<[string, [ms: number, count: number][], number | null]>([
    ["none", [], null],
    ["one", [[1200, 1]], 1.1],
    [
      "half and half: the lower",
      [
        [1200, 2],
        [12_000, 2],
      ],
      1.1,
    ],
    [
      "most of them long",
      [
        [12_000, 3],
        [1200, 2],
      ],
      11,
    ],
  ])("%s", (_name, counts, median) => {
    expect(medianSeconds(counts.map(([ms, count]) => ({ ms, count })))).toBe(median);
  });
});

test("every interval that the range touches is listed in full, up to a year of days", async () => {
  base = await testDatabase();
  await project(base.db);
  await base.db.write(taken({ id: "m1", domain: "one.test", at: NOW - 1 }));
  const ranges = [
    ["day", NOW - 1, NOW, 1, 1],
    ["day", NOW - 1, NOW + 1, 2, 1],
    ["day", NOW, NOW + DAY_MS, 1, 0],
    ["day", NOW - 365 * DAY_MS - 1, NOW, 366, 1],
    ["hour", NOW - HOUR_MS + 5, NOW, 1, 1],
    ["hour", NOW - 31 * DAY_MS, NOW, 744, 1],
  ] as const;
  for (const [interval, from, to, intervals, accepted] of ranges) {
    const { data, totals } = await readStats(base.db, SENDER, interval, { from, to });
    expect([data.length, totals.accepted]).toEqual([intervals, accepted]);
    const step = interval === "day" ? DAY_MS : HOUR_MS;
    expect(data.every(({ at }, place) => at % step === 0 && at === (data[0]?.at ?? 0) + place * step)).toBe(
      true,
    );
  }
  await base.remove();
});
