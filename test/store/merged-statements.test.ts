import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { isBroken } from "../../src/store/engine/guards.ts";
import { join } from "node:path";
import { untakenGuard } from "../../src/store/messages/arrivals.ts";
import { newContent, ofProject } from "../../src/store/contents/content-bytes.ts";
import { storeContent } from "../../src/store/contents/contents.ts";
import { ConstraintError, type Statement } from "../../src/store/engine/client.ts";
import { type Connection, connect, Transaction } from "../../src/store/embedded/connection.ts";
import type { ReadyStatement, Written } from "../../src/store/sql/engine.ts";
import { EngineError } from "../../src/store/sql/errors.ts";
import { rowsStatement, rowsText, mergeStatements } from "../../src/store/sql/rows-text.ts";
import { insertEvents } from "../../src/store/events/events.ts";
import { insertAnswer } from "../../src/store/projects/idempotency.ts";
import { countReceived } from "../../src/store/threads/inboxes.ts";
import { insertMessage, type Message, NOT_SENT } from "../../src/store/messages/messages.ts";
import { insertRecipients } from "../../src/store/messages/recipients.ts";
import { insertProject } from "../../src/store/projects/projects.ts";
import { rememberReferences, stepThread } from "../../src/store/threads/threads.ts";
import { insertDeliveries } from "../../src/store/webhooks/webhook-deliveries.ts";
import { takeUsage, usageOf } from "../../src/store/projects/usage.ts";
import { testSender } from "../support/api.ts";
import { type Chance, chanceOf } from "../support/chance.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { newFolder, removeFolder } from "../support/folder.ts";

const NOW = 1_750_000_000_000;
const DAY = "2026-11-22";
const project = testSender("acc_1", "project", NOW);

function message(id: string): Message {
  return {
    id,
    senderId: project.id,
    direction: "outbound",
    status: "queued",
    subject: `of ${id}`,
    size: 10,
    from: { email: "a@shop.test" },
    to: [{ email: "b@shop.test" }],
    cc: [],
    bcc: [],
    replyTo: [],
    tags: [],
    rfcMessageId: `<${id}@shop.test>`,
    inReplyTo: null,
    threadId: null,
    inboxId: null,
    ...NOT_SENT,
    trust: null,
    testMode: false,
    createdAt: NOW,
  };
}

/** The writes of a send to one recipient. */
function send(id: string, body: string, limit: number | null = null): Statement[] {
  const kept = ofProject(project.id, newContent(Buffer.from(body)));
  const [recipient, event] = [
    {
      ord: 0,
      email: `${id}@x.test`,
      domain: "x.test",
      kind: "to",
      status: "queued",
      reason: null,
      dueAt: NOW,
    },
    { senderId: project.id, messageId: id, email: `${id}@x.test`, data: {}, createdAt: NOW },
  ] as const;
  return [
    takeUsage(project.id, DAY, 1, limit),
    ...insertMessage(message(id), { body: kept }, []),
    insertRecipients(project.id, id, [recipient], NOW),
    insertEvents([
      { ...event, id: `evt_${id}_1`, type: "accepted" },
      { ...event, id: `evt_${id}_2`, type: "queued" },
    ]),
  ];
}

/**
 * The further writes of a send with an Idempotency-Key, in a project with webhooks, one of which has been deleted.
 */
function more(id: string, key: string): Statement[] {
  const event = { id: `evt_${id}_1`, senderId: project.id, messageId: id, type: "accepted" } as const;
  const deliveries = ["whk_there", "whk_gone"].flatMap((webhookId) =>
    insertDeliveries([{ id: `dlv_${id}_${webhookId}`, webhookId, event }], NOW),
  );
  const at = { scope: project.id, endpoint: "POST /v1/emails", key };
  return [...deliveries, insertAnswer(at, { bodyHash: id, status: 202, body: "{}", createdAt: NOW })];
}

describe("sends that commit together", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase();
    const account =
      "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc_1', 'a', 'o@x.test', 1)";
    const webhook = `INSERT INTO webhooks (id, sender_id, url, event_types, secret, created_at, updated_at)
      VALUES ('whk_there', ?, 'https://hook.test', '["accepted"]', 's', 1, 1)`;
    await database.db.write([
      { sql: account, args: [] },
      insertProject(project),
      { sql: webhook, args: [project.id] },
    ]);
  });
  afterAll(() => database.remove());

  test("each get their own result, and are stored as if alone", async () => {
    const ids = Array.from({ length: 37 }, (_, n) => `msg_all_${n}`);
    const written = await Promise.all(ids.map((id) => database.db.write(send(id, "the same for all"))));
    expect(new Set(written.map((each) => each.map(({ changes }) => changes).join()))).toEqual(
      new Set(["1,1,1,1,1,2"]),
    );
    const stored = await database.db.all<{ id: string; subject: string; email: string; events: string }>(
      `SELECT m.id, m.subject, r.email, (SELECT group_concat(e.id) FROM events e WHERE e.message_id = m.id) AS events
        FROM messages m JOIN recipients r ON r.message_id = m.id WHERE m.id LIKE 'msg_all_%'`,
    );
    const expected = ids.map((id) => ({
      id,
      subject: `of ${id}`,
      email: `${id}@x.test`,
      events: `evt_${id}_1,evt_${id}_2`,
    }));
    const byId = (a: { id: string }, b: { id: string }): number => (a.id < b.id ? -1 : 1);
    expect(stored.toSorted(byId)).toEqual(expected.toSorted(byId));
    expect(await database.db.all("SELECT refs FROM contents")).toEqual([{ refs: 37 }]);
    expect(await usageOf(database.db, project.id, DAY)).toBe(37);
    expect(await database.db.all("SELECT accepted FROM stats")).toEqual([{ accepted: 37 }]);
  });

  test("sends that commit together do not fail with the one among them that does", async () => {
    await database.db.write(send("msg_there", "there"));
    const ids = [...Array.from({ length: 20 }, (_, n) => `msg_some_${n}`)].toSpliced(11, 0, "msg_there");
    const ended = await Promise.allSettled(ids.map((id) => database.db.write(send(id, `body of ${id}`))));
    const failed = ended.flatMap((one, at) => (one.status === "rejected" ? [[ids[at], one.reason]] : []));
    expect(failed.map(([id]) => id)).toEqual(["msg_there"]);
    expect(failed[0]?.[1]).toBeInstanceOf(ConstraintError);
    expect(failed[0]?.[1].unique).toBe("messages.id");
    expect(
      await database.db.first("SELECT count(*) AS n FROM message_content WHERE message_id LIKE 'msg_some_%'"),
    ).toEqual({ n: 20 });
  });

  test("sends that commit together need as few statements with webhooks and Idempotency-Keys, and each key keeps one answer", async () => {
    const keys = Array.from({ length: 16 }, (_, n) => `key_${n}`).toSpliced(9, 0, "key_3");
    const writes = keys.map((key, n) => [...send(`msg_key_${n}`, `${n}`), ...more(`msg_key_${n}`, key)]);
    const ended = await Promise.allSettled(writes.map((write) => database.db.write(write)));
    const failed = ended.flatMap((one, at) =>
      one.status === "rejected" ? [[at, isBroken(one.reason, "key_answered")]] : [],
    );
    expect(failed).toEqual([[9, true]]);
    const answers = await database.db.all<{ key: string; body_hash: string }>(
      "SELECT key, body_hash FROM idempotency",
    );
    expect(answers).toHaveLength(16);
    expect(answers.find(({ key }) => key === "key_3")?.body_hash).toBe("msg_key_3");
    expect(await database.db.first("SELECT count(*) AS n FROM messages WHERE id = 'msg_key_9'")).toEqual({
      n: 0,
    });
    expect(
      await database.db.all("SELECT webhook_id, count(*) AS n FROM webhook_deliveries GROUP BY webhook_id"),
    ).toEqual([{ webhook_id: "whk_there", n: 16 }]);
    const few = mergeStatements(writes.flat().filter((_, at) => at < 100) as ReadyStatement[]) ?? [];
    const tables = few.map(({ sql }) => /^INSERT INTO (\w+)/.exec(sql)?.[1]);
    expect(tables.filter((table, at) => table !== tables[at - 1])).toEqual([
      "usage",
      "idempotency",
      "contents",
      "messages",
      "message_content",
      "recipients",
      "events",
      "webhook_deliveries",
    ]);
  });

  test("sends that commit together stop at the limit of the day", async () => {
    const used = await usageOf(database.db, project.id, DAY);
    const ended = await Promise.allSettled(
      Array.from({ length: 9 }, (_, n) => database.db.write(send(`msg_limit_${n}`, "x", used + 5))),
    );
    expect(ended.filter(({ status }) => status === "fulfilled")).toHaveLength(5);
    for (const one of ended)
      if (one.status === "rejected") expect(isBroken(one.reason, "over_daily_volume")).toBe(true);
    expect(await usageOf(database.db, project.id, DAY)).toBe(used + 5);
  });
});

/** The writes of a message to the inbox. */
function arrival(
  id: string,
  { threadId = `thr_${id}`, rfcId = `<${id}@away.test>`, names = [] as string[] },
): Statement[] {
  const raw = ofProject(project.id, newContent(Buffer.from(`raw ${rfcId}`)));
  const arriving: Message = {
    ...message(id),
    direction: "inbound",
    status: "delivered",
    rfcMessageId: rfcId,
    threadId,
    inboxId: INBOX,
  };
  const untaken = untakenGuard({
    inboxId: INBOX,
    senderId: project.id,
    rfcMessageId: rfcId,
    raw: raw.key,
    since: 0,
    limit: 5,
  });
  // As messages over SMTP have it.
  const guard = { ...untaken, orderIndependent: true };
  const event = { id: `evt_${id}`, senderId: project.id, messageId: id, type: "inbound_received" } as const;
  return [
    ...insertMessage(arriving, { body: null, raw }, [], guard),
    stepThread({
      threadId,
      inboxId: INBOX,
      senderId: project.id,
      messageId: id,
      subject: `of ${id}`,
      preview: "p",
      participants: [`${id}@away.test`],
      hasAttachments: false,
      inbound: true,
      at: NOW,
    }),
    ...rememberReferences({ senderId: project.id, inboxId: INBOX, threadId }, names),
    countReceived(project.id, INBOX),
    insertEvents([{ ...event, email: null, data: {}, createdAt: NOW }]),
    ...insertDeliveries([{ id: `dlv_${id}`, webhookId: "whk_there", event }], NOW),
  ];
}

const INBOX = "inb_1";

describe("incoming messages that commit together", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase();
    const rows = [
      "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc_1', 'a', 'o@x.test', 1)",
      insertProject(project),
      `INSERT INTO webhooks (id, sender_id, url, event_types, secret, created_at, updated_at)
        VALUES ('whk_there', '${project.id}', 'https://hook.test', '["inbound_received"]', 's', 1, 1)`,
      `INSERT INTO domains (id, account_id, sender_id, name, status, receiving, created_at)
        VALUES ('dom_1', 'acc_1', '${project.id}', 'in.test', 'verified', 1, 1)`,
      `INSERT INTO inboxes (id, sender_id, domain_id, address, type, created_at)
        VALUES ('${INBOX}', '${project.id}', 'dom_1', 'a@in.test', 'agent', 1)`,
    ];
    await database.db.write(rows.map((row) => (typeof row === "string" ? { sql: row, args: [] } : row)));
  });
  afterAll(() => database.remove());
  const received = async () =>
    (await database.db.first<{ n: number }>("SELECT received_count AS n FROM inboxes"))?.n;

  test("need few statements, and each updates its thread and its inbox", async () => {
    const writes = Array.from({ length: 16 }, (_, n) =>
      arrival(`in_${n}`, { threadId: `thr_${n % 3}`, names: [`<named_${n % 2}@away.test>`] }),
    );
    const few = mergeStatements(writes.flat() as ReadyStatement[]) ?? [];
    const tables = few.map(
      ({ sql, indexes }) => `${/(?:INTO|UPDATE) (\w+)/.exec(sql)?.[1]} ${indexes.length}`,
    );
    expect(tables).toEqual([
      "contents 16",
      "messages 16",
      "message_content 16",
      "events 16",
      "webhook_deliveries 16",
      "threads 16",
      ...Array(16).fill("thread_references 1"),
      ...Array(16).fill("inboxes 1"),
    ]);
    await Promise.all(writes.map((write) => database.db.write(write)));
    expect(await received()).toBe(16);
    expect(
      await database.db.all("SELECT id, message_count AS n, subject, participants FROM threads ORDER BY id"),
    ).toEqual(
      [6, 5, 5].map((n, thread) => ({
        id: `thr_${thread}`,
        n,
        subject: `of in_${thread}`,
        participants: JSON.stringify(Array.from({ length: n }, (_, m) => `in_${3 * m + thread}@away.test`)),
      })),
    );
    expect(
      await database.db.all("SELECT rfc_message_id AS id, thread_id AS thread FROM thread_references"),
    ).toEqual([
      { id: "<named_0@away.test>", thread: "thr_0" },
      { id: "<named_1@away.test>", thread: "thr_1" },
    ]);
    for (const table of ["messages", "message_content", "contents", "events", "webhook_deliveries"])
      expect(await database.db.first(`SELECT count(*) AS n FROM ${table}`)).toEqual({ n: 16 });
  });

  test("do not fail with the one that the inbox has already", async () => {
    const writes = Array.from({ length: 9 }, (_, n) =>
      arrival(`more_${n}`, n === 4 ? { rfcId: "<in_7@away.test>" } : {}),
    );
    const ended = await Promise.allSettled(writes.map((write) => database.db.write(write)));
    const failed = ended.flatMap((one, at) =>
      one.status === "rejected" ? [[at, isBroken(one.reason, "message_conflict")]] : [],
    );
    expect(failed).toEqual([[4, true]]);
    expect(await received()).toBe(24);
    expect(await database.db.first("SELECT id FROM threads WHERE id = 'thr_more_4'")).toBeNull();
    expect(await database.db.first("SELECT refs FROM contents ORDER BY refs DESC")).toEqual({ refs: 1 });
  });

  test("do not fail with the one whose inbox is gone", async () => {
    const writes = Array.from({ length: 5 }, (_, n) => arrival(`last_${n}`, {}));
    writes[2] =
      writes[2]?.map(({ args, ...rest }) => ({
        ...rest,
        args: args.map((v) => (v === INBOX ? "inb_2" : v)),
      })) ?? [];
    const ended = await Promise.allSettled(writes.map((write) => database.db.write(write)));
    const failed = ended.flatMap((one, at) =>
      one.status === "rejected" ? [[at, isBroken(one.reason, "inbox_deleted")]] : [],
    );
    expect(failed).toEqual([[2, true]]);
    expect(await received()).toBe(28);
  });
});

const PARENTS = rowsText("messages", "id, n", "(?1, ?2)");
const CHILDREN = rowsText("recipients", "parent, n", "(?1, ?2), (?1, -1)");
const COUNTS = rowsText("usage", "id, n", "(?1, ?2)", {
  after: " ON CONFLICT (id) DO UPDATE SET n = n + excluded.n",
});
const SOME_CHILDREN = rowsText("recipients", "parent, n", "(?1, ?2), (?1, ?3)", { where: "column2 % 2 = 0" });
const COUNTS_UP_TO = rowsText("usage", "id, n", "(?1, ?2)", {
  after: " ON CONFLICT (id) DO UPDATE SET n = CASE WHEN n < ?3 THEN n + ?2 END",
  repeats: false,
});

const SCHEMA = `CREATE TABLE messages (id TEXT PRIMARY KEY, n INTEGER CHECK (n IN (1, 2, 3))) STRICT;
  CREATE TABLE recipients (parent TEXT NOT NULL REFERENCES messages (id), n INTEGER) STRICT;
  CREATE TABLE usage (id TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT;
  CREATE TABLE log (parents INTEGER) STRICT;`;

describe("statements", () => {
  test("become as few as powers of two up to 16 allow, parents first, and each keeps its values", () => {
    const statements = Array.from({ length: 23 }, (_, n) => [
      rowsStatement(CHILDREN, [`p${n}`, n]),
      rowsStatement(PARENTS, [`p${n}`, 1]),
    ]).flat() as ReadyStatement[];
    const few = mergeStatements(statements) ?? [];
    expect(few.map(({ indexes }) => indexes.length)).toEqual([16, 4, 2, 1, 16, 4, 2, 1]);
    expect(few.map(({ sql }) => sql.slice(0, 20))).toEqual([
      ...Array(4).fill("INSERT INTO messages"),
      ...Array(4).fill("INSERT INTO recipien"),
    ]);
    expect(few[6]?.sql).toBe(
      "INSERT INTO recipients (parent, n) VALUES (?1, ?2), (?1, -1), (?3, ?4), (?3, -1)",
    );
    expect(few[6]?.args).toEqual(["p20", 20, "p21", 21]);
    expect(few.flatMap(({ indexes }) => indexes).toSorted((a, b) => a - b)).toEqual(
      statements.map((_, n) => n),
    );
  });

  test("statements stay on their side of a statement that does something else", () => {
    const count = { sql: "INSERT INTO log SELECT count(*) FROM messages", args: [] };
    const parent = (id: string): ReadyStatement => rowsStatement(PARENTS, [id, 1]) as ReadyStatement;
    const few = mergeStatements([parent("a"), parent("b"), count, parent("c"), parent("d")]) ?? [];
    expect(few.map(({ indexes }) => indexes)).toEqual([[0, 1], [2], [3, 4]]);
  });

  test("store a content by the repeated text before a single statement refers to it", () => {
    const large = { ...ofProject("snd_1", newContent(Buffer.from("large"))), bytes: null };
    const [first, second] = ["one", "two"].map((text) => ofProject("snd_1", newContent(Buffer.from(text))));
    if (first === undefined || second === undefined) throw new Error("two contents");
    const named = [large, first, { ...first, bytes: null }, second, { ...second, bytes: null }];
    const few = mergeStatements(named.map((content) => storeContent(content, NOW)) as ReadyStatement[]) ?? [];
    expect(few.map(({ indexes }) => indexes)).toEqual([[1, 3], [0], [2], [4]]);
  });

  test("statements stay as they are if none can be joined", () => {
    const parent = rowsStatement(PARENTS, ["a", 1]) as ReadyStatement;
    expect(mergeStatements([parent, { sql: "DELETE FROM log", args: [] }, parent])).toBeNull();
    expect(mergeStatements([])).toBeNull();
  });
});

/** The outcome of their transaction: its results or its error. */
function outcome(connection: Connection, statements: ReadyStatement[]): Written[] | string {
  try {
    const transaction = new Transaction(connection);
    transaction.run(statements);
    return transaction.commit();
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return `${error.statement} ${error.message}`;
  }
}

function someStatement(chance: Chance): ReadyStatement {
  const id = `p${chance.below(60)}`;
  const statement = chance.pick([
    // One value in fifty that the CHECK refuses, and now and then a duplicate parent or an orphan child.
    () =>
      rowsStatement(PARENTS, [`${id}_${chance.below(30)}`, chance.happens(0.02) ? 9 : 1 + chance.below(3)]),
    () => rowsStatement(CHILDREN, ["root", chance.below(100)]),
    () => rowsStatement(CHILDREN, [chance.happens(0.97) ? "root" : id, 0]),
    () => rowsStatement(SOME_CHILDREN, ["root", chance.below(9), chance.below(9)]),
    () => rowsStatement(COUNTS, [`u${chance.below(3)}`, 1 + chance.below(5)]),
    () => rowsStatement(COUNTS_UP_TO, [`v${chance.below(3)}`, 1, 40]),
    () => ({ sql: "INSERT INTO log SELECT count(*) FROM messages", args: [] }),
  ])();
  return statement as ReadyStatement;
}

test("a joined commit leaves and returns what the same statements would one after another", () => {
  const folder = newFolder("together");
  const [joined, apart] = ["joined", "apart"].map((name) => {
    const connection = connect(join(folder, `${name}.db`));
    connection.database.exec(SCHEMA);
    connection.database.exec("INSERT INTO messages VALUES ('root', 1)");
    return connection;
  }) as [Connection, Connection];
  const chance = chanceOf(22);
  const seen = { failed: 0, joined: 0 };
  for (let round = 0; round < 400; round++) {
    const statements = Array.from({ length: 1 + chance.below(40) }, () => someStatement(chance));
    const alone = statements.map(({ sql, args }) => ({ sql, args }));
    const told = outcome(joined, statements);
    expect(told).toEqual(outcome(apart, alone));
    if (typeof told === "string") seen.failed++;
    else if (mergeStatements(statements) !== null) seen.joined++;
  }
  for (const table of ["messages", "recipients", "usage", "log"]) {
    const query = `SELECT * FROM ${table} ORDER BY 1, 2`.replace(table === "log" ? ", 2" : "", "");
    expect(joined.database.prepare(query).all()).toEqual(apart.database.prepare(query).all());
  }
  expect(seen.failed).toBeGreaterThan(50);
  expect(seen.joined).toBeGreaterThan(50);
  joined.close();
  apart.close();
  removeFolder(folder);
});
