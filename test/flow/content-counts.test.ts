import { DAY_MS } from "../../src/core/time/units.ts";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { removeUnusedContents } from "../../src/flows/sweep/removals.ts";
import { forgetContents, forgetMessages } from "../../src/flows/sweep/retention.ts";
import { UNUSED_KEPT_MS } from "../../src/store/contents/contents.ts";
import { deliver, delivered } from "../support/mail-in.ts";
import { until } from "../support/poll.ts";
import { receivingInboxes, startService, type TestService } from "../support/service.ts";
import { type ShiftedClock, shiftedClock } from "../support/shifted-clock.ts";

// Megabytes pass through each test, on a machine that may be busy.
setDefaultTimeout(180_000);

let service: TestService;
let clock: ShiftedClock;
let inboxId: string;
beforeAll(async () => {
  clock = shiftedClock();
  service = await startService({ DELIVERY: "capture" }, clock);
  [inboxId = ""] = await receivingInboxes(service, "in.test", ["a@in.test", "b@in.test"]);
});
afterAll(() => service.stop());

/** Contents whose count differs from their number of references, and references to missing contents. */
const WRONG = `WITH names AS (
    SELECT body AS key FROM message_content WHERE body IS NOT NULL
    UNION ALL SELECT raw FROM message_content WHERE raw IS NOT NULL
    UNION ALL SELECT content FROM attachments WHERE content IS NOT NULL),
  counted AS (SELECT key, count(*) AS times FROM names GROUP BY key)
  SELECT hex(key) AS key, refs, times FROM (
    SELECT c.key, c.refs, COALESCE(n.times, 0) AS times FROM contents c LEFT JOIN counted n ON n.key = c.key
    UNION ALL SELECT key, -1, times FROM counted WHERE key NOT IN (SELECT key FROM contents))
  WHERE refs <> times`;
const wrong = () => service.app.db.all<unknown>(WRONG);
const counted = () =>
  service.app.db.first<{ n: number; shared: number }>(
    "SELECT count(*) AS n, count(*) FILTER (WHERE refs > 1) AS shared FROM contents",
  );

const LARGE = "A line of a large text.\r\n".repeat(20_000);
const attachment = (text: string) => ({
  filename: "a.txt",
  content: Buffer.from(text).toString("base64"),
});
const item = (more: Record<string, unknown> = {}) => ({
  from: { email: "a@in.test" },
  to: [{ email: "ann@home.test" }, { email: "delivered@simulator.mail.test" }],
  subject: "x",
  text: "y",
  ...more,
});

async function send(more: Record<string, unknown>): Promise<string> {
  const id = await service.send(item(more));
  await service.message(id, "delivered");
  return id;
}

const ROADS: readonly [string, () => Promise<unknown>][] = [
  [
    "a send, with the same attachment twice",
    () => send({ attachments: [attachment(LARGE), attachment(LARGE)] }),
  ],
  ["one with large bodies", () => send({ html: LARGE, text: LARGE })],
  [
    "a batch of which some are refused",
    async () => {
      const attachments = [attachment(LARGE), attachment("small")];
      const emails = [
        item({ attachments }),
        item({ attachments, from: { email: "a@else.test" } }),
        item({ attachments }),
      ];
      const { body } = await service.call("POST", "/v1/emails/batch", { emails });
      for (const { id } of body.data) if (id !== undefined) await service.message(id, "delivered");
    },
  ],
  [
    "a template that renders to a large text, in a message with its own body",
    async () => {
      const template = { name: "t", subject: "s", html: "<p>{{ words }}</p>" };
      const { body } = await service.call("POST", "/v1/templates", template);
      await send({ templateId: body.id, text: LARGE, data: { words: LARGE } });
    },
  ],
  [
    "a send that is cancelled",
    async () => {
      const scheduledAt = new Date(clock.now() + DAY_MS / 2).toISOString();
      const { body } = await service.call(
        "POST",
        "/v1/emails",
        item({ scheduledAt, attachments: [attachment(LARGE)] }),
      );
      expect((await service.call("POST", `/v1/emails/${body.id}/cancel`)).status).toBe(200);
    },
  ],
  ["a mail for two inboxes", () => delivered(service, { to: ["a@in.test", "b@in.test"], body: LARGE })],
  [
    "a message that is delivered to us twice",
    async () => {
      const letter = {
        to: ["b@in.test"],
        headers: ["Message-ID: <twice@client.test>"],
        body: `${LARGE}twice`,
      };
      expect(await delivered(service, letter)).toBe(await delivered(service, letter));
    },
  ],
  ["a mail to a role mailbox", () => deliver(service, { to: ["postmaster@in.test"], body: LARGE })],
  [
    "a simulated mail",
    async () => {
      const mail = { inboxId, subject: "s", text: LARGE, attachments: [attachment(LARGE)] };
      expect((await service.call("POST", "/v1/inbound/simulate", mail)).status).toBe(202);
    },
  ],
  [
    "a reply",
    async () => {
      const id = await delivered(service, { to: ["a@in.test"], body: "Well?" });
      const { threadId } = (await service.call("GET", `/v1/emails/${id}`)).body;
      const reply = { text: LARGE, attachments: [attachment(LARGE)] };
      const { status, body } = await service.call("POST", `/v1/threads/${threadId}/reply`, reply);
      expect(status).toBe(202);
      await service.message(body.id, "delivered");
    },
  ],
];

test("every reference to a content is counted once, on all paths, until the last is removed", async () => {
  for (const [road, walk] of ROADS) {
    await walk();
    expect([road, await wrong()]).toEqual([road, []]);
  }
  expect((await counted())?.shared).toBeGreaterThan(2);
  const { db } = service.app;
  clock.shift(3 * DAY_MS);
  const young = await send({ attachments: [attachment(LARGE)] });
  await forgetContents({ db, clock }, 2)();
  expect(await wrong()).toEqual([]);
  const forget = forgetMessages({ db, clock }, 2);
  // If a message changes during the walk, as when it is indexed, the next walk handles it.
  await until(async () => {
    await forget();
    return (await db.all<unknown>("SELECT id FROM messages")).length === 1;
  });
  expect(await wrong()).toEqual([]);
  clock.shift(UNUSED_KEPT_MS + 1);
  await removeUnusedContents({ db, clock });
  const messages = await db.all<unknown>("SELECT id FROM messages");
  expect(messages).toEqual([{ id: young }]);
  expect(await wrong()).toEqual([]);
  const left = await db.all<unknown>(
    "SELECT DISTINCT key FROM content_chunks WHERE key NOT IN (SELECT key FROM contents)",
  );
  expect(left).toEqual([]);
});
