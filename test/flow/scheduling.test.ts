import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { until } from "../support/poll.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const RUN_MS = 270_000;
setDefaultTimeout(RUN_MS);
/** Pause between two database reads, the only way to see that nothing is due any more. */
const POLL_MS = 2;
/** Reads without a change after which time advances: the rest waits for the sweep. */
const STILL_LOOKS = 10;

let clock: ManualClock;
let service: TestService;
let relay: TestMx;
/** The time by the service's clock when each recipient was named to the smarthost. */
const arrivals = new Map<string, number[]>();

async function start(): Promise<void> {
  clock = manualClock();
  arrivals.clear();
  relay = startMx({
    answers: {
      RCPT(line) {
        const to = /<([^>]+)>/.exec(line)?.[1] ?? "";
        arrivals.set(to, [...(arrivals.get(to) ?? []), clock.now()]);
        return "250 ok";
      },
    },
  });
  const url = `smtp://127.0.0.1:${relay.port}`;
  service = await startService({ DELIVERY: "relay", SMTP_RELAY_URL: url }, clock);
  await verifiedDomain(service, "sender.test");
}
afterEach(async () => {
  await service.stop();
  relay.stop();
});

const mail = (to: string, at?: number) => ({
  from: { email: "news@sender.test" },
  to: [{ email: to }],
  subject: "Hi",
  text: "x",
  ...(at === undefined ? {} : { scheduledAt: new Date(at).toISOString() }),
});

const send = (to: string, at?: number) => service.send(mail(to, at));

/** Numbers in [0, 1), the same in each run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Waits until no message is in flight and none is due by the service's clock. */
async function quiet(): Promise<void> {
  let last = -1;
  for (let still = 0; ; still++) {
    const row = await service.app.db.first<{ moving: number }>(
      `SELECT COUNT(*) AS moving FROM recipients
        WHERE status = 'sending' OR (status IN ('accepted', 'queued', 'delivery_delayed') AND due_at <= ?)`,
      [clock.now()],
    );
    const moving = row?.moving ?? 0;
    if (moving === 0) return;
    if (moving !== last) still = 0;
    // A read without a change counts only once a later commit has ended, because a disk may be slow.
    else await service.app.db.write([{ sql: "UPDATE recipients SET due_at = due_at WHERE false", args: [] }]);
    if (still >= STILL_LOOKS) {
      clock.advance(SECOND_MS);
      still = 0;
    }
    last = moving;
    await Bun.sleep(POLL_MS);
  }
}

describe("scheduled mail", () => {
  const MAILS = 600;
  const BATCH = 100;
  const SPAN_MS = 2 * HOUR_MS;
  const LATEST_MS = MINUTE_MS;

  test("scheduled mail is sent once, never early and at most a minute late, over restarts and steps of the clock", async () => {
    await start();
    const random = seeded(20_260_131);
    const began = clock.now();
    const due = new Map<string, number>();
    for (let at = 0; at < MAILS; at++)
      due.set(`s${at}@one.test`, began + MINUTE_MS + Math.floor(random() * SPAN_MS));
    const items = [...due].map(([to, at]) => mail(to, at));
    for (let from = 0; from < MAILS; from += BATCH) {
      const emails = items.slice(from, from + BATCH);
      const { body } = await service.call("POST", "/v1/emails/batch", { emails });
      expect(body.data.filter(({ status }: { status: string }) => status === "accepted").length).toBe(BATCH);
    }
    /** Times that the clock skipped, in which no message can count as late. */
    const passed: { from: number; to: number }[] = [];
    const jump = (ms: number) => {
      if (ms > 0) passed.push({ from: clock.now(), to: clock.now() + ms });
      clock.step(ms);
    };
    let restarts = 0;
    for (let turn = 0; clock.now() < began + SPAN_MS + 2 * MINUTE_MS; turn++) {
      clock.advance(20 * SECOND_MS);
      // Amid mail that has just become due.
      if (turn === 60 || turn === 200) jump(HOUR_MS);
      if (turn === 130) jump(-HOUR_MS);
      if (turn % 40 === 20) {
        await service.restart();
        restarts++;
      }
      await quiet();
    }
    expect(restarts).toBeGreaterThan(3);
    const faults: string[] = [];
    let latest = 0;
    for (const [to, at] of due) {
      const times = arrivals.get(to) ?? [];
      const [time = 0] = times;
      const leapt = passed.map(({ from, to: end }) => Math.max(0, Math.min(end, time) - Math.max(from, at)));
      const late = time - at - leapt.reduce((sum, ms) => sum + ms, 0);
      latest = Math.max(latest, late);
      if (times.length !== 1) faults.push(`${to} went out ${times.length} times`);
      else if (time < at) faults.push(`${to} went out ${at - time} ms early`);
      else if (late > LATEST_MS) faults.push(`${to} went out ${late} ms late`);
    }
    process.stdout.write(`scheduling: ${MAILS} mails, ${restarts} restarts, at most ${latest} ms late\n`);
    expect(faults).toEqual([]);
    expect(relay.messages.items.length).toBe(MAILS);
  });

  test("moved to a past time answers with the time in its record", async () => {
    await start();
    const id = await send("moved@one.test", clock.now() + HOUR_MS);
    const past = new Date(clock.now() - HOUR_MS).toISOString();
    const { status, body } = await service.call("PATCH", `/v1/emails/${id}`, { scheduledAt: past });
    expect([status, body.scheduledAt]).toEqual([200, new Date(clock.now()).toISOString()]);
    const record = (await service.call("GET", `/v1/emails/${id}`)).body;
    expect(record.scheduledAt).toBe(body.scheduledAt);
  });

  test("more scheduled messages than one read of the sweep returns all go in one turn", async () => {
    await start();
    const at = clock.now() + HOUR_MS;
    const { db } = service.app;
    const id = await send("first@one.test", at);
    // The rows as the API writes them, because posting as many would take the test's time.
    const rows = Array.from({ length: 2500 }, (_, ord) => ord + 1);
    await db.write(
      rows.map((ord) => ({
        sql: `INSERT INTO recipients (message_id, ord, sender_id, email, domain, kind, status, due_at, last_event_at)
          SELECT message_id, ?, sender_id, ?, domain, kind, status, due_at, last_event_at
          FROM recipients WHERE message_id = ? AND ord = 0`,
        args: [ord, `r${ord}@simulator.mail.test`, id],
      })),
    );
    clock.advance(HOUR_MS);
    await waiting("accepted", 0);
    expect(clock.now()).toBe(at);
  });

  async function waiting(status: string, count: number): Promise<void> {
    const sql = "SELECT COUNT(*) AS count FROM recipients WHERE status = ?";
    while ((await service.app.db.first<{ count: number }>(sql, [status]))?.count !== count)
      await Bun.sleep(POLL_MS);
  }
});

describe("a race with the time of a scheduled message", () => {
  test.each(["cancel", "reschedule"])("that %s and the sweep run ends consistently", async (what) => {
    await start();
    const at = clock.now() + MINUTE_MS;
    const later = new Date(at + HOUR_MS).toISOString();
    const ids = await Promise.all(Array.from({ length: 40 }, (_, n) => send(`r${n}@one.test`, at)));
    clock.advance(MINUTE_MS - 1);
    const changes = ids.map(async (id, n) => {
      if (n === 20) clock.advance(SECOND_MS);
      const answer = await (what === "cancel"
        ? service.call("POST", `/v1/emails/${id}/cancel`)
        : service.call("PATCH", `/v1/emails/${id}`, { scheduledAt: later }));
      return answer.status;
    });
    const statuses = await Promise.all(changes);
    await quiet();
    for (const [n, status] of statuses.entries()) {
      const { body } = await service.call("GET", `/v1/emails/${ids[n]}`);
      const went = arrivals.get(`r${n}@one.test`)?.length ?? 0;
      expect([200, 409]).toContain(status);
      expect(went).toBe(status === 200 ? 0 : 1);
      const stays = what === "cancel" ? "failed" : "accepted";
      expect(body.status).toBe(status === 200 ? stays : "sent");
      const time = status === 200 && what === "reschedule" ? later : new Date(at).toISOString();
      expect(body.scheduledAt).toBe(time);
    }
    clock.advance(HOUR_MS + SECOND_MS);
    await quiet();
    const expected = what === "cancel" ? statuses.filter((status) => status === 409).length : ids.length;
    expect(relay.messages.items.length).toBe(expected);
  });
});

/** Advances time once the sweep is idle: a running turn would miss the change. */
async function passes(ms: number): Promise<void> {
  await clock.rested(SECOND_MS);
  clock.advance(ms);
}

test("if the clock is set back by a year, an undeliverable message is still given up 72 hours later", async () => {
  await start();
  relay.set({ RCPT: "451 4.3.0 later" });
  const id = await send("never@one.test");
  await service.message(id, "delivery_delayed");
  clock.step(-365 * 24 * HOUR_MS);
  await passes(2 * SECOND_MS);
  const tries = async () => (await service.call("GET", `/v1/emails/${id}/attempts`)).body.data.length;
  // Longer than the longest delay. The 72 hours are counted from the first one.
  for (let waits = 0; waits < 10; waits++) {
    const before = await tries();
    await passes(8 * HOUR_MS);
    await until(async () => (await tries()) > before);
  }
  expect((await service.call("GET", `/v1/emails/${id}`)).body.status).toBe("bounced");
});

describe("setting the clock back by an hour", () => {
  test("setting the clock back by an hour delays neither new mail nor a retry", async () => {
    await start();
    relay.set({ RCPT: "451 4.3.0 later" });
    const deferred = await send("retry@one.test");
    await service.message(deferred, "delivery_delayed");
    // A message that is committed and not claimed yet, as after a lost hint.
    const fresh = await send("fresh@one.test", clock.now() + MINUTE_MS);
    await service.app.db.write([
      {
        sql: "UPDATE recipients SET status = 'queued', due_at = ?, last_event_at = ? WHERE message_id = ?",
        args: [clock.now() + 10, clock.now() + 10, fresh],
      },
      { sql: "UPDATE messages SET status = 'queued', scheduled_at = NULL WHERE id = ?", args: [fresh] },
    ]);
    const scheduled = await send("scheduled@one.test", clock.now() + MINUTE_MS);
    relay.set({ RCPT: "250 ok" });
    clock.step(-HOUR_MS);
    await passes(2 * SECOND_MS);
    await service.message(fresh, "sent");
    await passes(2 * MINUTE_MS);
    await service.message(deferred, "sent");
    expect((await service.call("GET", `/v1/emails/${scheduled}`)).body.status).toBe("accepted");
    await passes(HOUR_MS);
    await service.message(scheduled, "sent");
  });

  test("setting the clock back by an hour sends mail that was tried before its time at its time, and not when the clock has caught up", async () => {
    await start();
    relay.set({ RCPT: "451 4.3.0 later" });
    const early = await send("early@one.test", clock.now() + MINUTE_MS);
    await clock.rested(SECOND_MS);
    clock.step(HOUR_MS);
    await passes(2 * SECOND_MS);
    await service.message(early, "delivery_delayed");
    relay.set({ RCPT: "250 ok" });
    clock.step(-HOUR_MS);
    await passes(2 * SECOND_MS);
    await passes(SECOND_MS);
    expect((await service.call("GET", `/v1/emails/${early}`)).body.status).toBe("delivery_delayed");
    await passes(2 * MINUTE_MS);
    await service.message(early, "sent");
  });

  test("while the service was down delays nothing either", async () => {
    await start();
    relay.set({ RCPT: "451 4.3.0 later" });
    const deferred = await send("retry@one.test");
    await service.message(deferred, "delivery_delayed");
    relay.set({ RCPT: "250 ok" });
    clock.step(-HOUR_MS);
    await service.restart();
    await passes(2 * MINUTE_MS);
    await service.message(deferred, "sent");
  });
});

describe("the bytes of a message", () => {
  const composed = async (id: string): Promise<string> =>
    (await service.call("GET", `/v1/emails/${id}/raw`)).body;

  test("the bytes of a message are the same at each later try, so that a peer whose 250 was lost recognises it", async () => {
    await start();
    const id = await send("retry@one.test");
    await service.message(id, "sent");
    clock.advance(HOUR_MS);
    expect(await composed(id)).toBe(relay.messages.items[0]?.data.toString() ?? "");
  });

  test("the bytes of a message are dated as scheduled, or with the time of posting if that is later", async () => {
    await start();
    const dated = (at: number) => `Date: ${new Date(at).toUTCString().replace("GMT", "+0000")}\r\n`;
    const posted = clock.now();
    const ahead = await send("ahead@one.test", posted + HOUR_MS);
    const past = await send("past@one.test", posted - HOUR_MS);
    expect(await composed(ahead)).toContain(dated(posted + HOUR_MS));
    expect(await composed(past)).toContain(dated(posted));
    // Running time would cut it off.
    await service.message(past, "sent");
    const later = new Date(posted + 2 * HOUR_MS).toISOString();
    await service.call("PATCH", `/v1/emails/${ahead}`, { scheduledAt: later });
    clock.advance(2 * HOUR_MS);
    await service.message(ahead, "sent");
    expect(relay.messages.items.at(-1)?.data.toString()).toContain(dated(posted + 2 * HOUR_MS));
  });
});
