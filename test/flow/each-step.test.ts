import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { type FailingSteps, failingSteps, type Way } from "../support/failing-steps.ts";
import { type HttpsSink, startSink } from "../support/https-sink.ts";
import { deliver } from "../support/mail-in.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { receivingInboxes, SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";
import { type ThreadWork, threadWork } from "../support/thread-work.ts";

// Every database step of an operation fails once, in each possible way. Then either the answer is an error, or it
// is true. Nothing is half done, a retry succeeds exactly once, and postponed work is done within a minute.

const TIMEOUT_MS = 300_000;
setDefaultTimeout(TIMEOUT_MS);
/** Number of checks, that many milliseconds apart, without a change after which everything counts as idle. */
const STILL_LOOKS = 3;
const LOOK_MS = 3;
/** Checks of an operation without an answer, before its clock advances. */
const PATIENT_LOOKS = 100;
const STEP_MS = 250;
/** Time within which all postponed work is done, and by which the clock advances until then: the pause of the sweep. */
const REST_MS = 60_000;
const REST_STEP_MS = 1000;

let service: TestService;
let steps: FailingSteps;
let threads: ThreadWork;
let clock: ManualClock;
let sink: HttpsSink;
let inboxId: string;
let webhookId: string;
let topicId: string;
let made = 0;

beforeAll(async () => {
  steps = failingSteps();
  threads = threadWork();
  clock = manualClock(Date.UTC(2026, 0, 5));
  sink = startSink();
  // Work that fails on our side waits for a retry like any other.
  const settings = { DELIVERY_RETRY_SECONDS: "2", WEBHOOK_RETRY_SECONDS: "0,2,2,2", LOG_LEVEL: "error" };
  service = await startService(settings, clock);
  [inboxId = ""] = await receivingInboxes(service, "in.test", ["desk@in.test"]);
  webhookId = (await post("/v1/webhooks", { url: sink.url, eventTypes: ["*"] })).body.id;
  const forwardTo = "team@far.test";
  await post("/v1/forward-addresses", { email: forwardTo });
  await service.app.db.write([{ sql: "UPDATE forward_addresses SET confirmed_at = 1", args: [] }]);
  await post("/v1/rules", { name: "On", when: { header: { name: "X-On" } }, then: { forwardTo } });
  topicId = (await post("/v1/topics", { name: "News" })).body.id;
  for (const name of ["ana", "ben"]) await post("/v1/contacts", { email: `${name}@out.test` });
  // Starts the thread that reads mail, which takes real time.
  expect(await letter(["Subject: First"])).toMatchObject({ ok: true });
});
afterAll(async () => {
  await inTime(service.stop());
  await sink.stop();
  threads.restore();
  steps.restore();
});

interface Answer {
  ok: boolean;
  status: number;
  /** Returns whether it is an error that asks the client to retry, in the protocol's form. */
  again: boolean;
}

/** An operation: prepared without failures, then run as often as needed. */
type Deed = () => Promise<() => Promise<Answer>>;

const unique = (): string => `n${++made}`;

async function post(path: string, body?: unknown, headers: Record<string, string> = {}) {
  const { status, body: answer } = await service.call("POST", path, body, { headers });
  const again = status === 503 && answer.error.type === "service_unavailable";
  return { ok: status < 300, status, again, body: answer };
}

/** A POST with a new Idempotency-Key. */
function posting(path: string, body?: unknown): () => Promise<Answer> {
  const headers = { "idempotency-key": unique() };
  return () => post(path, body, headers);
}

async function letter(headers: readonly string[]): Promise<Answer> {
  const status = Number((await deliver(service, { to: "desk@in.test", headers })).slice(0, 3));
  return { ok: status === 250, status, again: status >= 400 && status < 500 };
}

const item = (to: readonly string[], more: object = {}) => ({
  from: { email: "desk@in.test" },
  to: to.map((email) => ({ email })),
  subject: "Hi",
  text: "x",
  ...more,
});
const simulated = (name: string): string => `${name}+${unique()}@simulator.${SERVICE_DOMAIN}`;

const DEEDS: Readonly<Record<string, Deed>> = {
  "a send to two": async () =>
    posting("/v1/emails", item([`${unique()}@out.test`, `${unique()}@out.test`], { html: "<p>x</p>" })),
  "a send that is complained of": async () => posting("/v1/emails", item([simulated("complained")])),
  async "a cancellation"() {
    const scheduledAt = new Date(clock.now() + 3_600_000).toISOString();
    const { body } = await post("/v1/emails", item([`${unique()}@out.test`], { scheduledAt }));
    return posting(`/v1/emails/${body.id}/cancel`);
  },
  async "a mail in that a rule forwards, and again"() {
    const headers = [`Message-ID: <${unique()}@client.test>`, "Subject: Hi", "X-On: 1"];
    return () => letter(headers);
  },
  async "a reply"() {
    const arrived = { inboxId, from: { email: `${unique()}@out.test` }, text: "x" };
    const { body } = await post("/v1/inbound/simulate", arrived);
    return posting(`/v1/threads/${body.threadId}/reply`, { text: "y" });
  },
  async "a draft that is sent"() {
    const arrived = { inboxId, from: { email: `${unique()}@out.test` }, text: "x" };
    const { body } = await post("/v1/inbound/simulate", arrived);
    const draft = (await post("/v1/drafts", { threadId: body.threadId, text: "y" })).body;
    return posting(`/v1/drafts/${draft.id}/send`, { version: draft.version });
  },
  "a broadcast": async () => {
    const letter = {
      name: unique(),
      topicId,
      from: "desk@in.test",
      subject: "Hi",
      text: "{{ unsubscribeUrl }}",
    };
    const { id } = (await post("/v1/broadcasts", letter)).body;
    return posting(`/v1/broadcasts/${id}/send`);
  },
  "a sample": async () => posting(`/v1/webhooks/${webhookId}/test`),
  "a template": async () =>
    posting("/v1/templates", { name: "T", slug: unique(), subject: "{{a}}", text: "x" }),
};

/** The stored state, in numbers. Attempts are left out: one that our own failure ended is repeated. */
const FIGURES = `
  SELECT 'message ' || direction || ' ' || status || ' ' || (thread_id IS NOT NULL) || (sent_at IS NOT NULL) AS name,
    count(*) AS n FROM messages GROUP BY 1
  UNION ALL SELECT 'recipient ' || status || ' ' || COALESCE(reason, ''), count(*) FROM recipients GROUP BY 1
  UNION ALL SELECT 'event ' || type, count(*) FROM events WHERE type NOT IN ('sending', 'delivery_delayed') GROUP BY 1
  UNION ALL SELECT 'push ' || type || ' ' || status, count(*) FROM webhook_deliveries
    WHERE type NOT IN ('sending', 'delivery_delayed') GROUP BY 1
  UNION ALL SELECT 'content', sum(refs) FROM contents
  UNION ALL SELECT 'thread', count(*) FROM threads
  UNION ALL SELECT 'in threads', sum(message_count) FROM threads
  UNION ALL SELECT 'received', sum(received_count) FROM inboxes
  UNION ALL SELECT 'suppression ' || reason, count(*) FROM suppressions GROUP BY 1
  UNION ALL SELECT 'template', count(*) FROM templates
  UNION ALL SELECT 'broadcast ' || status, count(*) FROM broadcasts GROUP BY 1
  UNION ALL SELECT 'recipients of broadcasts', sum(recipients) FROM broadcasts
  UNION ALL SELECT 'effect ' || (email_id IS NOT NULL) || (due_at IS NULL), count(*) FROM rule_effects GROUP BY 1
  UNION ALL SELECT 'draft', count(*) FROM drafts
  UNION ALL SELECT 'answer', count(*) FROM idempotency
  UNION ALL SELECT 'used', sum(recipients) FROM usage
  UNION ALL SELECT 'settled', sum(settled) FROM reputation
  UNION ALL SELECT 'figures', sum(1000000 * accepted + 10000 * delivered + 1000 * bounced + complained + failed + received)
    FROM stats`;

/** Rows that contradict each other. */
const TORN: Readonly<Record<string, string>> = {
  claim: "SELECT message_id AS id FROM recipients WHERE (status = 'sending') <> (claimed_by IS NOT NULL)",
  "waits for nothing": `SELECT message_id AS id FROM recipients
    WHERE (due_at IS NULL) = (status IN ('accepted', 'queued', 'delivery_delayed'))`,
  "push that waits for nothing": `SELECT id FROM webhook_deliveries
    WHERE (status = 'pending') = (due_at IS NULL AND claimed_by IS NULL)`,
  "event told twice": `SELECT event_id AS id FROM webhook_deliveries WHERE event_id IS NOT NULL
    GROUP BY webhook_id, event_id HAVING count(*) > 1`,
  "thread's count": `SELECT id FROM threads
    WHERE message_count <> (SELECT count(*) FROM messages WHERE thread_id = threads.id)`,
  "tries without their event": `SELECT r.message_id AS id FROM recipients r WHERE r.attempts <> (SELECT count(*)
    FROM events e WHERE e.message_id = r.message_id AND e.email = r.email AND e.type = 'sending')`,
  "content's count": `SELECT hex(key) AS id FROM contents WHERE refs <>
    (SELECT count(*) FROM message_content WHERE body = contents.key)
    + (SELECT count(*) FROM message_content WHERE raw = contents.key)
    + (SELECT count(*) FROM attachments WHERE content = contents.key)`,
};

const AT_WORK = `SELECT (SELECT count(*) FROM recipients WHERE claimed_by IS NOT NULL OR due_at <= ?1)
  + (SELECT count(*) FROM webhook_deliveries WHERE claimed_by IS NOT NULL OR due_at <= ?1)
  + (SELECT count(*) FROM messages WHERE position IS NULL) + (SELECT count(*) FROM messages_changed)
  + (SELECT count(*) FROM broadcasts WHERE status = 'sending') AS n`;

/** Resolves when nothing is running. */
async function still(): Promise<void> {
  for (let looks = 0, taken = steps.taken; looks < STILL_LOOKS; looks++) {
    await Bun.sleep(LOOK_MS);
    if (steps.taken !== taken || threads.running > 0) looks = -1;
    taken = steps.taken;
  }
}

/** Advances time until all work that can be done is done. If that takes too long, reports the rest. */
async function rest(): Promise<string[]> {
  for (let passed = 0; ; passed += REST_STEP_MS) {
    await still();
    const left = await service.app.db.first<{ n: number }>(AT_WORK, [clock.now() + REST_MS]);
    if (left?.n === 0) return [];
    if (passed > REST_MS) return [`${left?.n} rows are still at work`];
    clock.advance(REST_STEP_MS);
  }
}

/**
 * Awaits a promise, and advances the clock if nothing happens for too long. The clock stands still while a thread works.
 * Otherwise the watch over threads, which uses this clock, would end one that a busy machine slows down.
 */
async function inTime<Value>(coming: Promise<Value>): Promise<Value> {
  let over = false;
  const ended = coming.finally(() => {
    over = true;
  });
  for (let looks = 0; !over; looks++) {
    await Promise.race([ended, Bun.sleep(LOOK_MS)]);
    if (threads.running > 0) looks = 0;
    else if (looks > PATIENT_LOOKS) clock.advance(STEP_MS);
  }
  return ended;
}

/** The answer of an operation, once its background work is idle. */
async function answerTo(act: () => Promise<Answer>): Promise<Answer> {
  const answer = await inTime(act());
  await still();
  return answer;
}

type Figures = ReadonlyMap<string, number>;

async function figures(): Promise<Figures> {
  const rows = await service.app.db.all<{ name: string; n: number }>(FIGURES);
  return new Map(rows.map(({ name, n }) => [name, n]));
}

/** The changed numbers, as lines. */
async function changesSince(before: Figures): Promise<string[]> {
  const after = await figures();
  const names = [...new Set([...before.keys(), ...after.keys()])].sort();
  return names.flatMap((name) => {
    const change = (after.get(name) ?? 0) - (before.get(name) ?? 0);
    return change === 0 ? [] : [`${name}: ${change}`];
  });
}

async function torn(): Promise<string[]> {
  const found: string[] = [];
  for (const [name, sql] of Object.entries(TORN))
    found.push(...(await service.app.db.all<{ id: string }>(sql)).map(({ id }) => `${name} of ${id}`));
  return found;
}

/** The changes of an operation without failures. */
async function usual(deed: Deed): Promise<string> {
  const act = await deed();
  await rest();
  const before = await figures();
  expect(await answerTo(act)).toMatchObject({ ok: true });
  expect(await rest()).toEqual([]);
  return (await changesSince(before)).join("\n");
}

/** Runs an operation in which one step fails. Returns the faults, or null if it has no such step. */
async function withFailure(deed: Deed, at: number, way: Way, wanted: string): Promise<string[] | null> {
  const act = await deed();
  await rest();
  const before = await figures();
  steps.watch({ at, way });
  const answer = await answerTo(act);
  const failed = steps.unwatch();
  const wrong = await rest();
  if (!answer.ok) {
    if (!answer.again) wrong.push(`is answered ${answer.status}`);
    const changes = (await changesSince(before)).join("\n");
    if (changes !== "" && changes !== wanted) wrong.push(`is half done: ${changes}`);
    const again = await answerTo(act);
    if (!again.ok) wrong.push(`is answered ${again.status} again`);
    wrong.push(...(await rest()));
  }
  const changes = (await changesSince(before)).join("\n");
  if (changes !== wanted) wrong.push(`has done ${changes}\nnot ${wanted}`);
  wrong.push(...(await torn()));
  if (failed === null && wrong.length === 0) return null;
  return wrong.map((line) => `${way} at step ${at} (${failed}): ${line}`);
}

test.each(Object.keys(DEEDS))("whichever database step fails: %s", async (name) => {
  const deed = DEEDS[name];
  if (deed === undefined) throw new Error(`nobody does ${name}`);
  // Twice, because statements are prepared at their first use.
  await usual(deed);
  const wanted = await usual(deed);
  for (const way of ["refused", "unheard"] as const) {
    let at = 0;
    for (; ; at++) {
      const wrong = await withFailure(deed, at, way, wanted);
      if (wrong === null) break;
      expect(wrong).toEqual([]);
    }
    expect(at).toBeGreaterThan(0);
  }
});
