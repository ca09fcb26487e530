import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { newContent, ofProject } from "../../src/store/contents/content-bytes.ts";
import { ConstraintError, type Statement } from "../../src/store/engine/client.ts";
import { type Connection, connect, Transaction } from "../../src/store/engine/connection.ts";
import { EngineError, type ReadyStatement, type Written } from "../../src/store/engine/engine.ts";
import { rowsStatement, rowsText, together } from "../../src/store/engine/rows-text.ts";
import { insertEvents } from "../../src/store/events.ts";
import { insertMessage, type Message } from "../../src/store/messages.ts";
import { insertRecipients } from "../../src/store/recipients.ts";
import { insertSender } from "../../src/store/senders.ts";
import { isOverUsage, takeUsage, usageOf } from "../../src/store/usage.ts";
import { testSender } from "../support/api.ts";
import { type Chance, chanceOf } from "../support/chance.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { newFolder, removeFolder } from "../support/folder.ts";

const NOW = 1_750_000_000_000;
const DAY = "2026-11-22";
const project = testSender("acc_1", "project", NOW);

function message(id: string): Message {
  return {
    ...{ id, senderId: project.id, direction: "outbound", status: "queued", subject: `of ${id}`, size: 10 },
    ...{
      from: { email: "a@shop.test" },
      to: [{ email: "b@shop.test" }],
      cc: [],
      bcc: [],
      replyTo: [],
      tags: [],
    },
    ...{
      rfcMessageId: `<${id}@shop.test>`,
      inReplyTo: null,
      threadId: null,
      inboxId: null,
      templateId: null,
    },
    ...{ scheduledAt: null, sentAt: null, testMode: false, trackOpens: true, trackClicks: false },
    ...{ unsubscribeLink: false, createdAt: NOW },
  };
}

/** What a send to one writes. */
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

describe("sends that commit together", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase();
    const account =
      "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc_1', 'a', 'o@x.test', 1)";
    await database.db.write([{ sql: account, args: [] }, insertSender(project)]);
  });
  afterAll(() => database.remove());

  test("are each told what they have done, and stored as if alone", async () => {
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
      ...{ id, subject: `of ${id}`, email: `${id}@x.test` },
      events: `evt_${id}_1,evt_${id}_2`,
    }));
    const byId = (a: { id: string }, b: { id: string }): number => (a.id < b.id ? -1 : 1);
    expect(stored.toSorted(byId)).toEqual(expected.toSorted(byId));
    expect(await database.db.all("SELECT refs FROM contents")).toEqual([{ refs: 37 }]);
    expect(await usageOf(database.db, project.id, DAY)).toBe(37);
    expect(await database.db.all("SELECT accepted FROM stats")).toEqual([{ accepted: 37 }]);
  });

  test("do not fail with the one among them that does", async () => {
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

  test("go as far as the limit of the day and not over it", async () => {
    const used = await usageOf(database.db, project.id, DAY);
    const ended = await Promise.allSettled(
      Array.from({ length: 9 }, (_, n) => database.db.write(send(`msg_limit_${n}`, "x", used + 5))),
    );
    expect(ended.filter(({ status }) => status === "fulfilled")).toHaveLength(5);
    for (const one of ended) if (one.status === "rejected") expect(isOverUsage(one.reason)).toBe(true);
    expect(await usageOf(database.db, project.id, DAY)).toBe(used + 5);
  });
});

const PARENTS = rowsText("messages", "id, n", "(?1, ?2)");
const CHILDREN = rowsText("recipients", "parent, n", "(?1, ?2), (?1, -1)");
const COUNTS = rowsText("usage", "id, n", "(?1, ?2)", {
  after: " ON CONFLICT (id) DO UPDATE SET n = n + excluded.n",
});
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
    const few = together(statements) ?? [];
    expect(few.map(({ places }) => places.length)).toEqual([16, 4, 2, 1, 16, 4, 2, 1]);
    expect(few.map(({ sql }) => sql.slice(0, 20))).toEqual([
      ...Array(4).fill("INSERT INTO messages"),
      ...Array(4).fill("INSERT INTO recipien"),
    ]);
    expect(few[6]?.sql).toBe(
      "INSERT INTO recipients (parent, n) VALUES (?1, ?2), (?1, -1), (?3, ?4), (?3, -1)",
    );
    expect(few[6]?.args).toEqual(["p20", 20, "p21", 21]);
    expect(few.flatMap(({ places }) => places).toSorted((a, b) => a - b)).toEqual(
      statements.map((_, n) => n),
    );
  });

  test("stay on their side of one that does something else", () => {
    const count = { sql: "INSERT INTO log SELECT count(*) FROM messages", args: [] };
    const parent = (id: string): ReadyStatement => rowsStatement(PARENTS, [id, 1]) as ReadyStatement;
    const few = together([parent("a"), parent("b"), count, parent("c"), parent("d")]) ?? [];
    expect(few.map(({ places }) => places)).toEqual([[0, 1], [2], [3, 4]]);
  });

  test("stay as they are where none can be joined", () => {
    const parent = rowsStatement(PARENTS, ["a", 1]) as ReadyStatement;
    expect(together([parent, { sql: "DELETE FROM log", args: [] }, parent])).toBeNull();
    expect(together([])).toBeNull();
  });
});

/** What a transaction of them does: what it tells, or how it fails. */
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
    // One value in fifty that the CHECK refuses, and now and then a parent twice or a child of nobody.
    () =>
      rowsStatement(PARENTS, [`${id}_${chance.below(30)}`, chance.happens(0.02) ? 9 : 1 + chance.below(3)]),
    () => rowsStatement(CHILDREN, ["root", chance.below(100)]),
    () => rowsStatement(CHILDREN, [chance.happens(0.97) ? "root" : id, 0]),
    () => rowsStatement(COUNTS, [`u${chance.below(3)}`, 1 + chance.below(5)]),
    () => rowsStatement(COUNTS_UP_TO, [`v${chance.below(3)}`, 1, 40]),
    () => ({ sql: "INSERT INTO log SELECT count(*) FROM messages", args: [] }),
  ])();
  return statement as ReadyStatement;
}

test("whatever is committed together leaves and tells what it would one after another", () => {
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
    else if (together(statements) !== null) seen.joined++;
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
