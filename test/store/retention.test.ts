import { DAY_MS } from "../../src/core/time/units.ts";
import { afterEach, beforeEach, describe, expect } from "bun:test";
import { newId } from "../../src/core/ids.ts";
import type { MessageStatus, RecipientStatus } from "../../src/core/messages/states.ts";
import {
  COUNTED_DAYS,
  COUNTS_PER_TURN,
  DELIVERIES,
  DESTINATIONS_DAYS,
  EXPIRED_KEPT_MS,
  forgetCounts,
  FIGURES_DAYS,
  FIGURES_PER_WRITE,
  forgetDeliveries,
  forgetFigures,
  forgetMessages,
  forgetSuppressions,
  MESSAGES,
  SUPPRESSIONS,
} from "../../src/flows/sweep/retention.ts";
import { ROWS_PER_WRITE } from "../../src/flows/sweep/delete-messages.ts";
import type { Db, Statement } from "../../src/store/engine/client.ts";
import { isContentRemoved, removeContents } from "../../src/store/messages/content-release.ts";
import { bodyBytes } from "../../src/store/contents/message-body.ts";
import { storeRendered } from "../../src/store/messages/message-content.ts";
import type { Message } from "../../src/store/messages/messages.ts";
import { insertRecipients } from "../../src/store/messages/recipients.ts";
import { oldDeliveries } from "../../src/store/messages/retention.ts";
import { projectsOf } from "../../src/store/projects/old-figures.ts";
import { findThread, MAX_THREAD_REFERENCES, rememberReferences } from "../../src/store/threads/threads.ts";
import { suppress } from "../../src/store/projects/suppressions.ts";
import { utcDay } from "../../src/store/projects/usage.ts";
import { test } from "../support/engine-test.ts";
import { around } from "../support/around.ts";
import { type Lists, message, openLists, sharingPosition } from "../support/lists.ts";
import { manualClock } from "../support/manual-clock.ts";

const DAYS = 3;
const NOW = Date.parse("2026-03-10T12:00:00Z");
const OLD = NOW - DAYS * DAY_MS - 1000;

let lists: Lists;
let senderId: string;
const clock = manualClock(NOW);

beforeEach(async () => {
  lists = await openLists();
  senderId = await lists.project();
  await lists.db.migrate([
    { sql: "CREATE VIRTUAL TABLE vocabulary USING fts5vocab('message_terms', 'row')", args: [] },
    {
      sql: `INSERT INTO webhooks (id, sender_id, url, event_types, secret, created_at, updated_at)
        VALUES ('whk_1', ?, 'https://x.test', '["*"]', 's', 1, 1)`,
      args: [senderId],
    },
  ]);
});
afterEach(() => lists.remove());

const old = (given: Partial<Message> = {}): Message => message(senderId, { createdAt: OLD, ...given });
const forget = (db: Db = lists.db): Promise<void> => forgetMessages({ db, clock }, DAYS)();
const write = (sql: string, ...args: Statement["args"]) => lists.db.write([{ sql, args }]);

async function ids(table = "messages", column = "id"): Promise<string[]> {
  const rows = await lists.db.all<Record<string, string>>(`SELECT ${column} AS id FROM ${table} ORDER BY 1`);
  return rows.map(({ id }) => String(id));
}

/** Terms that the index has for messages. */
async function terms(): Promise<string[]> {
  const rows = await lists.db.all<{ term: string }>("SELECT term FROM vocabulary");
  return rows.map(({ term }) => term);
}

/** A recipient of a message, in a state. */
function recipient(messageId: string, status: RecipientStatus, ord = 0): Statement {
  return insertRecipients(
    senderId,
    messageId,
    [{ ord, email: "a@b.test", domain: "b.test", kind: "to", status, reason: null, dueAt: null }],
    OLD,
  );
}

function delivery(
  id: string,
  messageId: string,
  status: string,
  lastAttemptAt: number | null = OLD,
): Statement {
  return {
    sql: `INSERT INTO webhook_deliveries
        (id, webhook_id, sender_id, message_id, type, status, last_attempt_at, created_at)
      VALUES (?, 'whk_1', ?, ?, 'delivery', ?, ?, ?)`,
    args: [id, senderId, messageId, status, lastAttemptAt, OLD],
  };
}

describe("messages", () => {
  test("older than the retention are removed with everything that belongs to them, younger ones stay", async () => {
    const [going, staying] = [old(), message(senderId, { createdAt: NOW - DAYS * DAY_MS + 1 })];
    await lists.store([going, staying]);
    for (const { id } of [going, staying])
      await lists.db.write([
        recipient(id, "delivered"),
        {
          sql: "INSERT INTO events (message_id, id, sender_id, type, created_at) VALUES (?, ?, ?, 'open', 1)",
          args: [id, newId("evt", OLD), senderId],
        },
        {
          sql: `INSERT INTO attempts (message_id, ord, attempt, started_at, duration_ms, outcome)
            VALUES (?, 0, 1, 1, 1, 'accepted')`,
          args: [id],
        },
        { sql: "INSERT INTO engagement (message_id, ord, opens) VALUES (?, 0, 1)", args: [id] },
        {
          sql: `INSERT INTO attachments (id, message_id, ord, filename, content_type, disposition, size)
            VALUES (?, ?, 0, 'f', 't/t', 'attachment', 1)`,
          args: [newId("att", OLD), id],
        },
        { sql: "INSERT INTO message_content (message_id) VALUES (?)", args: [id] },
      ]);
    await forget();
    for (const table of ["recipients", "events", "attempts", "engagement", "attachments", "message_content"])
      expect([table, await ids(table, "message_id")]).toEqual([table, [staying.id]]);
    expect(await ids()).toEqual([staying.id]);
  });

  const STATES: readonly [RecipientStatus, boolean][] = [
    ...(["accepted", "queued", "sending", "delivery_delayed"] as const).map((at) => [at, false] as const),
    ...(
      ["sent", "delivered", "bounced", "complained", "rejected", "rendering_failure", "failed"] as const
    ).map((at) => [at, true] as const),
  ].map(([status, goes]): [RecipientStatus, boolean] => [status, goes]);
  for (const [status, goes] of STATES)
    test(`messages with a recipient that is ${status} next to a delivered one ${goes ? "go" : "stay"}`, async () => {
      const given = old({ status });
      await lists.store([given]);
      await lists.db.write([recipient(given.id, "delivered", 0), recipient(given.id, status, 1)]);
      await forget();
      expect(await ids()).toEqual(goes ? [] : [given.id]);
    });

  const COUNTED: readonly [string, Partial<Message>, boolean][] = [
    ["sent a moment ago", { sentAt: NOW - 1 }, false],
    ["sent before", { sentAt: OLD, scheduledAt: NOW - 1 }, true],
    ["scheduled for a moment ago, and refused", { scheduledAt: NOW - 1 }, false],
  ];
  for (const [name, given, goes] of COUNTED)
    test(`messages of old age, ${name}, ${goes ? "go" : "stay"}: retention counts from a late send`, async () => {
      const one = old(given);
      await lists.store([one]);
      await forget();
      expect(await ids()).toEqual(goes ? [] : [one.id]);
    });

  test("messages with a webhook delivery still to be made stay until it is made", async () => {
    const given = old();
    await lists.store([given]);
    await lists.db.write([delivery("dlv_1", given.id, "pending")]);
    await forget();
    expect(await ids()).toEqual([given.id]);
    await write("UPDATE webhook_deliveries SET status = 'failed'");
    await forget();
    expect(await ids()).toEqual([]);
  });

  test("messages that must stay do not block later ones, even if they fill more than a turn", async () => {
    const stuck = Array.from({ length: MESSAGES.rows * MESSAGES.pages + 1 }, () => old({ status: "queued" }));
    const going = old({ createdAt: OLD + 1 });
    await lists.store([...stuck, going]);
    for (let at = 0; at < stuck.length; at += 100)
      await lists.db.write(stuck.slice(at, at + 100).map(({ id }) => recipient(id, "queued")));
    const turn = forgetMessages({ db: lists.db, clock }, DAYS);
    await turn();
    expect((await ids()).length).toBe(stuck.length + 1);
    await turn();
    expect(await ids()).toEqual(stuck.map(({ id }) => id).sort());
  });

  test("removed by two processes at once are removed once, and neither process fails", async () => {
    await lists.store(Array.from({ length: 120 }, () => old()));
    await lists.index();
    const other = await lists.another();
    try {
      await Promise.all([forget(), forget(other)]);
      await forget();
    } finally {
      await other.close();
    }
    expect([await ids(), await terms()]).toEqual([[], []]);
  });

  test("messages with many events are removed in separate writes: no write deletes more than the limit, unless one message has more", async () => {
    const counts = [ROWS_PER_WRITE + 1, ROWS_PER_WRITE - 1, 1, 1, 0];
    const given = counts.map(() => old()).sort((a, b) => (a.id < b.id ? -1 : 1));
    await lists.store(given);
    for (const [at, { id }] of given.entries())
      await write(
        `INSERT INTO events (message_id, id, sender_id, type, created_at)
          WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?2)
          SELECT ?1, 'evt_' || n, ?3, 'open', 1 FROM numbers WHERE n > 0`,
        id,
        counts[at] ?? 0,
        senderId,
      );
    const going: unknown[] = [];
    const watched: Db = {
      ...around(lists.db),
      write(statements) {
        const deletion = statements.find(({ sql }) => sql.startsWith("DELETE FROM messages "));
        going.push(JSON.parse(String(deletion?.args[0])));
        return lists.db.write(statements);
      },
    };
    await forget(watched);
    const [a, b, c, d, e] = given.map(({ id }) => id);
    expect(going).toEqual([[a], [b, c], [d, e]]);
    expect([await ids(), await ids("events")]).toEqual([[], []]);
  });

  const HAPPENING: readonly [string, (id: string) => Statement][] = [
    ["a report opens a webhook delivery", (id) => delivery("dlv_1", id, "pending")],
    ["a recipient moves again", (id) => recipient(id, "queued")],
    [
      "it is removed from the index",
      (id) => ({ sql: "UPDATE messages SET position = NULL WHERE id = ?", args: [id] }),
    ],
  ];
  for (const [name, happening] of HAPPENING)
    test(`stay for another round if ${name} between the read and the write`, async () => {
      const given = old();
      await lists.store([given]);
      await lists.index();
      const late: Db = {
        ...around(lists.db),
        async write(statements) {
          await lists.db.write([happening(given.id)]);
          return lists.db.write(statements);
        },
      };
      await forget(late);
      expect(await ids()).toEqual([given.id]);
    });
});

/** Sets a message's subject, as rendering its template does. */
async function render({ id }: Message): Promise<void> {
  await write("INSERT INTO message_content (message_id) VALUES (?)", id);
  await lists.db.write(storeRendered(senderId, id, { subject: "Rendered", body: null }, NOW));
}

describe("the search index keeps nothing of a removed message", () => {
  const store = async (...messages: Message[]): Promise<void> => {
    await lists.store(messages);
    await lists.index();
  };
  const become = async (given: Message, ...statuses: MessageStatus[]): Promise<void> => {
    for (const status of statuses) {
      await lists.settle([{ ...given, status }]);
      await lists.index();
    }
  };
  const HISTORIES: readonly [string, () => Promise<void>][] = [
    ["entered at its end", () => store(old({ subject: "Final words", tags: [{ name: "a", value: "b" }] }))],
    ["that was refused", () => store(old({ direction: "inbound", status: "inbound_rejected" }))],
    [
      "that went through every state",
      async () => {
        const given = old({ status: "queued" });
        await store(given);
        await become(given, "sent", "delivered", "bounced", "complained");
      },
    ],
    ["that was never indexed", () => lists.store([old()])],
    [
      "that got its subject while indexed",
      async () => {
        const given = old({ subject: "", to: [{ email: "x@y.test", name: "Xenia" }] });
        await store(given);
        await render(given);
        await lists.index();
      },
    ],
    [
      "that got its subject while indexed and waits to be indexed again",
      async () => {
        const given = old({ subject: "" });
        await store(given);
        await render(given);
      },
    ],
    ["with a NUL in its subject", () => store(old({ subject: "a\0bcdef" }))],
    [
      "with more terms than are kept",
      () =>
        store(
          old({ to: Array.from({ length: 3000 }, (_, at) => ({ email: `recipient${at}@home.example` })) }),
        ),
    ],
    [
      "with the same time as others",
      () => store(...Array.from({ length: 40 }, () => old({ subject: "same" }))),
    ],
  ];
  for (const [name, happen] of HISTORIES)
    test(name, async () => {
      await happen();
      await forget();
      expect(await ids()).toEqual([]);
      expect(await terms()).toEqual([]);
    });

  test("removing a message loses nothing of another at its position in the index", async () => {
    await store(message(senderId, { createdAt: NOW }));
    const [going, staying] = sharingPosition([
      old({ subject: "same words" }),
      old({ subject: "same words" }),
    ]);
    if (going === undefined || staying === undefined) throw new Error("two were made");
    await store(going);
    await store(staying);
    const places = await lists.db.all("SELECT DISTINCT position FROM messages WHERE created_at = ?", [OLD]);
    expect(places).toHaveLength(1);
    await lists.db.write([recipient(staying.id, "queued")]);
    await forget();
    expect(await lists.paged(senderId, { q: "same words" }, 5)).toEqual([staying.id]);
    await write("UPDATE recipients SET status = 'failed'");
    await forget();
    expect(await lists.paged(senderId, { q: "same words" }, 5)).toEqual([]);
    expect((await terms()).filter((term) => term.endsWith("wor"))).toEqual([]);
  });

  test("a message that joins the position of a removed one at the same time is not lost", async () => {
    await store(message(senderId, { createdAt: NOW }));
    const [going, joining] = sharingPosition([
      old({ subject: "same words" }),
      old({ subject: "same words" }),
    ]);
    if (going === undefined || joining === undefined) throw new Error("two were made");
    await store(going);
    const late: Db = {
      ...around(lists.db),
      async write(statements) {
        await store(joining);
        return lists.db.write(statements);
      },
    };
    await forget(late);
    expect(await lists.paged(senderId, { q: "same words" }, 5)).toEqual(
      [going.id, joining.id].sort().reverse(),
    );
  });
});

describe("threads", () => {
  const thread = (id: string, count: number, last: string) =>
    lists.db.write([
      {
        sql: `INSERT INTO domains (id, account_id, sender_id, name, status, created_at)
          VALUES ('dom_1', 'acc', ?, 'x.test', 'verified', 1) ON CONFLICT DO NOTHING`,
        args: [senderId],
      },
      {
        sql: `INSERT INTO inboxes (id, sender_id, domain_id, address, type, received_count, created_at)
          VALUES ('inb_1', ?, 'dom_1', 'a@x.test', 'agent', 7, 1) ON CONFLICT DO NOTHING`,
        args: [senderId],
      },
      {
        sql: `INSERT INTO threads (id, sender_id, inbox_id, subject, preview, message_count, last_message_id,
            last_message_at, created_at, updated_at) VALUES (?, ?, 'inb_1', 's', 'of the last', ?, ?, ?, 1, 1)`,
        args: [id, senderId, count, last, OLD],
      },
      {
        sql: `INSERT INTO thread_references (inbox_id, rfc_message_id, sender_id, thread_id)
          VALUES ('inb_1', ?, ?, ?)`,
        args: [`<${id}@named>`, senderId, id],
      },
    ]);
  const shown = () =>
    lists.db.all(
      "SELECT id, message_count AS count, last_message_id AS last, preview FROM threads ORDER BY id",
    );

  test("threads count the remaining messages, and are removed with their last message and remembered Message-IDs", async () => {
    const [first, last, only] = [
      old({ threadId: "thr_1" }),
      message(senderId, { createdAt: NOW, threadId: "thr_1" }),
      old({ threadId: "thr_2" }),
    ];
    await lists.store([first, last, only]);
    await thread("thr_1", 2, last.id);
    await thread("thr_2", 1, only.id);
    await forget();
    expect(await shown()).toEqual([{ id: "thr_1", count: 1, last: last.id, preview: "of the last" }]);
    expect(await ids("thread_references", "thread_id")).toEqual(["thr_1"]);
    // The inbox is still one that has received mail.
    expect(await lists.db.first("SELECT received_count AS n FROM inboxes")).toEqual({ n: 7 });
  });

  test("threads are found by removed Message-IDs while they have a message, and not after", async () => {
    const ours = { threadId: "thr_1", inboxId: "inb_1" };
    const [lost, named, last, only] = [
      old({ ...ours, rfcMessageId: "<lost@x>" }),
      old({ threadId: "thr_1", rfcMessageId: "<elsewhere@x>" }),
      message(senderId, { ...ours, createdAt: NOW, rfcMessageId: "<last@x>" }),
      old({ threadId: "thr_2", inboxId: "inb_1", rfcMessageId: "<only@x>" }),
    ];
    await lists.store([lost, named, last, only]);
    await thread("thr_1", 3, last.id);
    await thread("thr_2", 1, only.id);
    const found = (id: string) => findThread(lists.db, senderId, "inb_1", [id]);
    await forget();
    expect(await ids()).toEqual([last.id]);
    expect(await found("<lost@x>")).toBe("thr_1");
    expect(await found("<elsewhere@x>")).toBeNull();
    expect(await found("<only@x>")).toBeNull();
    clock.advance(2 * DAYS * DAY_MS);
    await forget();
    clock.step(NOW - clock.now());
    expect(await found("<lost@x>")).toBeNull();
    expect(await ids("thread_references", "rfc_message_id")).toEqual([]);
  });

  test("threads show nothing of a last message that lost its content, and still show the others", async () => {
    const [first, last, only] = [
      old({ threadId: "thr_1" }),
      old({ threadId: "thr_1" }),
      old({ threadId: "thr_2" }),
    ];
    await lists.store([first, last, only]);
    await thread("thr_1", 2, last.id);
    await thread("thr_2", 1, only.id);
    for (const { id } of [first, last, only])
      await write("INSERT INTO message_content (message_id) VALUES (?)", id);
    await lists.db.write(removeContents([first.id, only.id], { now: NOW }));
    expect(await shown()).toEqual([
      { id: "thr_1", count: 2, last: last.id, preview: "of the last" },
      { id: "thr_2", count: 1, last: only.id, preview: "" },
    ]);
    const stranger = await lists.project();
    const lost = (owner: string, { id }: Message) => isContentRemoved(lists.db, owner, id);
    expect(await Promise.all([first, last, only].map((one) => lost(senderId, one)))).toEqual([
      true,
      false,
      true,
    ]);
    expect(await lost(stranger, only)).toBe(false);
  });

  test("threads whose last message is removed before an older one show that one", async () => {
    const [stuck, going] = [
      old({ threadId: "thr_1", status: "queued" }),
      old({ threadId: "thr_1", createdAt: OLD + 1 }),
    ];
    const body = bodyBytes({ html: null, text: "Still here" });
    await lists.store([stuck, going]);
    await lists.db.write([
      recipient(stuck.id, "queued"),
      {
        sql: `INSERT INTO contents (key, sender_id, refs, size, encoding, stored_in, created_at, bytes)
          VALUES (x'01', '', 1, ?, 'plain', 'row', 1, ?)`,
        args: [body.length, body],
      },
      { sql: "INSERT INTO message_content (message_id, body) VALUES (?, x'01')", args: [stuck.id] },
    ]);
    await thread("thr_1", 2, going.id);
    await forget();
    expect(await shown()).toEqual([{ id: "thr_1", count: 1, last: stuck.id, preview: "Still here" }]);
  });
});

describe("the webhook log", () => {
  const line = (createdAt: number) => newId("dlv", createdAt);
  const forgetLines = () => forgetDeliveries({ db: lists.db, clock }, DAYS)();

  test("the webhook log loses lines that ended before the retention, and no others", async () => {
    const lines = {
      over: line(OLD),
      never: line(OLD),
      lately: line(OLD),
      pending: line(OLD),
      young: line(NOW),
    };
    await lists.db.write([
      delivery(lines.over, "msg_1", "succeeded"),
      delivery(lines.never, "msg_1", "failed", null),
      delivery(lines.lately, "msg_1", "failed", NOW - 1),
      delivery(lines.pending, "msg_1", "pending"),
      delivery(lines.young, "msg_1", "succeeded"),
    ]);
    await forgetLines();
    expect(await ids("webhook_deliveries")).toEqual([lines.lately, lines.pending, lines.young].sort());
  });

  test("the webhook log keeps a line that is replayed while it is about to be removed", async () => {
    const [over, replayed] = [line(OLD), line(OLD)];
    await lists.db.write([over, replayed].map((id) => delivery(id, "msg_1", "succeeded")));
    const meanwhile: Db = {
      ...around(lists.db),
      write: async (statements) => {
        await write("UPDATE webhook_deliveries SET status = 'pending' WHERE id = ?", replayed);
        return lists.db.write(statements);
      },
    };
    await forgetDeliveries({ db: meanwhile, clock }, DAYS)();
    expect(await ids("webhook_deliveries")).toEqual([replayed]);
  });

  test("projects are visited from where the last turn ended, not from the first", async () => {
    const lines = Array.from({ length: 4 }, (_, n) => line(OLD + n));
    await lists.db.write(lines.map((id) => delivery(id, "msg_1", "succeeded")));
    const [first = "", second, third, last = ""] = lines;
    const within = { after: first, below: last, limit: 9 };
    expect((await oldDeliveries(lists.db, within, { now: NOW, days: 0 })).map(({ id }) => id)).toEqual([
      second,
      third,
    ] as string[]);
    const projects = [senderId, await lists.project(), await lists.project()].sort();
    const behind = { after: projects[0] ?? "", below: projects[2] ?? "", limit: 9 };
    expect(await projectsOf(lists.db, behind)).toEqual([{ id: projects[1] ?? "" }]);
  });

  test("the webhook log is read in a limited number of lines a turn, and one more waits for the next", async () => {
    const all = DELIVERIES.rows * DELIVERIES.pages + 1;
    const statements = Array.from({ length: all }, () => delivery(line(OLD), "msg_1", "succeeded"));
    for (let at = 0; at < all; at += 500) await lists.db.write(statements.slice(at, at + 500));
    const turn = forgetDeliveries({ db: lists.db, clock }, DAYS);
    await turn();
    expect((await ids("webhook_deliveries")).length).toBe(1);
    await turn();
    expect(await ids("webhook_deliveries")).toEqual([]);
  });
});

describe("suppressions", () => {
  const GONE = NOW - EXPIRED_KEPT_MS;
  const suppression = (email: string, expiresAt: number | null, createdAt = OLD): Statement =>
    suppress({
      id: newId("sup", createdAt),
      senderId,
      email,
      messageId: null,
      expiresAt,
      createdAt,
      reason: "bounce",
      bounceType: "soft",
    });

  test("suppressions are removed a day after they have expired, and no others are", async () => {
    await lists.db.write([
      suppression("gone@a.test", GONE),
      suppression("lately@a.test", GONE + 1),
      suppression("later@a.test", NOW + 1),
      suppression("never@a.test", null),
    ]);
    await forgetSuppressions({ db: lists.db, clock })();
    expect(await ids("suppressions", "email")).toEqual(["lately@a.test", "later@a.test", "never@a.test"]);
  });

  test("suppressions that are extended while they are about to be removed stay", async () => {
    await lists.db.write([suppression("again@a.test", GONE), suppression("gone@a.test", GONE)]);
    const meanwhile: Db = {
      ...around(lists.db),
      write: async (statements) => {
        await lists.db.write([suppression("again@a.test", null)]);
        return lists.db.write(statements);
      },
    };
    await forgetSuppressions({ db: meanwhile, clock })();
    expect(await ids("suppressions", "email")).toEqual(["again@a.test"]);
  });

  test("suppressions are read in a limited number a turn, however many stay, and again an hour after the last", async () => {
    const own = manualClock(NOW);
    const stay = SUPPRESSIONS.rows * SUPPRESSIONS.pages;
    const statements = Array.from({ length: stay }, (_, at) => suppression(`${at}@a.test`, null));
    for (let at = 0; at < stay; at += 500) await lists.db.write(statements.slice(at, at + 500));
    await lists.db.write([suppression("gone@a.test", GONE, OLD + 1)]);
    const turn = forgetSuppressions({ db: lists.db, clock: own });
    await turn();
    expect((await ids("suppressions")).length).toBe(stay + 1);
    await turn();
    expect((await ids("suppressions")).length).toBe(stay);
    await lists.db.write([suppression("next@a.test", GONE)]);
    own.advance(3_599_999);
    for (const _ of [1, 2]) await turn();
    expect((await ids("suppressions")).length).toBe(stay + 1);
    own.advance(1);
    for (const _ of [1, 2]) await turn();
    expect((await ids("suppressions")).length).toBe(stay);
  });
});

for (const [table, columns] of [
  ["usage", "recipients"],
  ["reputation", "settled"],
] as const)
  test(`${table} of more than ${COUNTED_DAYS} days ago is removed, a limited number a turn`, async () => {
    const day = (days: number) => utcDay(NOW - days * DAY_MS);
    const put = (sender: string, on: string): Statement => ({
      sql: `INSERT INTO ${table} (sender_id, day, ${columns}) VALUES (?, ?, 1)`,
      args: [sender, on],
    });
    const many = Array.from({ length: COUNTS_PER_TURN + 1 }, (_, at) =>
      put(`snd_${at}`, day(COUNTED_DAYS + 1)),
    );
    await lists.db.write([put("kept", day(COUNTED_DAYS)), put("kept", day(0))]);
    for (let at = 0; at < many.length; at += 500) await lists.db.write(many.slice(at, at + 500));
    const turn = forgetCounts({ db: lists.db, clock });
    await turn();
    expect((await ids(table, "sender_id")).length).toBe(3);
    await turn();
    expect(await ids(table, "day")).toEqual([day(COUNTED_DAYS), day(0)]);
  });

test("counts of old days are still removed after the clock was set back", async () => {
  const own = manualClock(NOW);
  const turn = forgetCounts({ db: lists.db, clock: own });
  await turn();
  own.step(-DAY_MS);
  own.advance(DAY_MS);
  const day = utcDay(NOW - (COUNTED_DAYS + 5) * DAY_MS);
  const old = "INSERT INTO usage (sender_id, day, recipients) VALUES ('snd_1', ?, 1)";
  await lists.db.write([{ sql: old, args: [day] }]);
  await turn();
  expect(await ids("usage", "day")).toEqual([]);
});

describe("figures", () => {
  const HOUR_MS = DAY_MS / 24;
  const counted = (id: string, days: number): Statement[] => {
    const at = NOW - days * DAY_MS;
    return [
      { sql: "INSERT INTO stats (sender_id, hour) VALUES (?, ?)", args: [id, Math.floor(at / HOUR_MS)] },
      {
        sql: "INSERT INTO stats_destinations (sender_id, day, domain, outcome, count) VALUES (?, ?, 'a.test', -2, 1)",
        args: [id, Math.floor(at / DAY_MS)],
      },
      {
        sql: "INSERT INTO stats_providers (sender_id, day, provider, delivered) VALUES (?, ?, 'google', 1)",
        args: [id, Math.floor(at / DAY_MS)],
      },
    ];
  };
  const project = (id: string): Statement => ({
    sql: `INSERT INTO senders (id, account_id, external_id, name, plan, trust_tier, created_at)
      SELECT ?1, account_id, ?1, ?1, plan, trust_tier, 1 FROM senders LIMIT 1`,
    args: [id],
  });
  const count = async (table: string) => (await ids(table, "sender_id")).length;

  test("figures of projects that stopped sending are removed, except for days that can be queried", async () => {
    const [first, second] = ["snd_00000000000000000000000001", "snd_00000000000000000000000002"];
    const days = [0, DESTINATIONS_DAYS, DESTINATIONS_DAYS + 1, FIGURES_DAYS, FIGURES_DAYS + 1];
    for (const id of [first, second])
      await lists.db.write([project(id), ...days.flatMap((each) => counted(id, each))]);
    expect([await count("stats"), await count("stats_domains")]).toEqual([10, 10]);
    await forgetFigures({ db: lists.db, clock })();
    const [hour, day] = [Math.floor(NOW / HOUR_MS), Math.floor(NOW / DAY_MS)];
    const times = (table: string, time: string) =>
      lists.db.all(`SELECT sender_id AS id, ${time} AS at FROM ${table} ORDER BY 1, 2 DESC`);
    const kept = (now: number, step: number, ago: readonly number[]) =>
      [first, second].flatMap((id) => ago.map((each) => ({ id, at: now - each * step })));
    expect(await times("stats", "hour")).toEqual(kept(hour, 24, days.slice(0, 4)));
    for (const table of ["stats_destinations", "stats_domains", "stats_providers"])
      expect(await times(table, "day")).toEqual(kept(day, 1, days.slice(0, 2)));
  });

  test("figures are removed in a limited number a write, and the rest an hour later", async () => {
    const own = manualClock(NOW);
    const id = "snd_00000000000000000000000001";
    await lists.db.write([project(id)]);
    const hours = Array.from({ length: FIGURES_PER_WRITE + 1 }, (_, at) => at);
    await write(
      "INSERT INTO stats (sender_id, hour) SELECT ?, value FROM json_each(?)",
      id,
      JSON.stringify(hours),
    );
    const turn = forgetFigures({ db: lists.db, clock: own });
    for (const _ of [1, 2]) await turn();
    expect(await count("stats")).toBe(1);
    own.advance(HOUR_MS);
    await turn();
    expect(await count("stats")).toBe(0);
  });
});

test("a thread remembers a limited number of Message-IDs, twenty from each message, and another thread has its own limit", async () => {
  await write(
    `INSERT INTO domains (id, account_id, sender_id, name, status, created_at)
      SELECT 'dom_1', account_id, id, 'in.test', 'verified', 1 FROM senders WHERE id = ?`,
    senderId,
  );
  await write(
    `INSERT INTO inboxes (id, sender_id, domain_id, address, type, created_at)
      VALUES ('inb_1', ?, 'dom_1', 'a@in.test', 'agent', 1)`,
    senderId,
  );
  const named = (threadId: string, from: number) =>
    rememberReferences(
      { senderId, inboxId: "inb_1", threadId },
      Array.from({ length: 20 }, (_, at) => `<${from + at}@x>`),
    );
  for (let from = 0; from < MAX_THREAD_REFERENCES + 60; from += 20)
    await lists.db.write(named("thr_1", from));
  expect((await ids("thread_references", "rfc_message_id")).length).toBe(MAX_THREAD_REFERENCES);
  await lists.db.write(named("thr_2", MAX_THREAD_REFERENCES));
  expect((await ids("thread_references", "rfc_message_id")).length).toBe(MAX_THREAD_REFERENCES + 20);
});
