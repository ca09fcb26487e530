import { afterAll, beforeAll, describe, expect } from "bun:test";
import { isBroken } from "../../src/store/engine/guards.ts";
import { Admission } from "../../src/core/concurrency/admission.ts";
import { idFloor, newId } from "../../src/core/ids.ts";
import { INBOXES_PAUSE_MS, removeDeletedInboxes } from "../../src/flows/sweep/removals.ts";
import { LARGE_READS, type LargeContents } from "../../src/store/contents/large-reads.ts";
import { MAX_EVENTS_SHOWN, showConversation } from "../../src/http/views/conversation.ts";
import { arrivalFacts } from "../../src/store/messages/arrivals.ts";
import type { Db, Statement, Written } from "../../src/store/engine/client.ts";
import { EVENTS_AT_A_TIME, listEvents } from "../../src/store/events/events.ts";
import { deleteInbox, removeInbox, ROWS_PER_REMOVAL } from "../../src/store/threads/inbox-removal.ts";
import {
  countReceived,
  getInbox,
  INBOXES_AT_A_TIME,
  listInboxes,
  updateInbox,
} from "../../src/store/threads/inboxes.ts";
import { getThread, lastMessageId, stepThread } from "../../src/store/threads/threads.ts";
import { test } from "../support/engine-test.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { around } from "../support/around.ts";
import { manualClock } from "../support/manual-clock.ts";
import { reason } from "../support/reason.ts";

const NOW = 1_750_000_000_000;

let api: TestApi;
let mine: string;
let domainId: string;
beforeAll(async () => {
  api = await testApi();
  mine = api.acme.a.id;
  domainId = (await api.call("POST", "/v1/domains", { body: { domain: "in.example.com" } })).json.id;
});
afterAll(() => api.close());

const run = (sql: string, ...args: (string | number | null)[]) => api.db.write([{ sql, args }]);
/** Rows of that many numbers from 1 on, as table `numbers (n)`. */
const numbers = (count: number) =>
  `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count})`;
const countOf = async (table: string, where: string) =>
  (await api.db.first<{ n: number }>(`SELECT count(*) AS n FROM ${table} WHERE ${where}`))?.n;

/** The database with a record of each read, its event loop turn, and the rows that each write changed. */
function watched() {
  const reads: { rows: number; turn: number }[] = [];
  const writes: Written[][] = [];
  let turn = 0;
  let ended = false;
  const count = (): void => {
    turn++;
    if (!ended) setImmediate(count);
  };
  setImmediate(count);
  const db: Db = {
    ...around(api.db),
    async all<Row>(sql: string, args?: (string | number | null)[]) {
      const rows = await api.db.all<Row>(sql, args);
      reads.push({ rows: rows.length, turn });
      return rows;
    },
    async write(statements) {
      const written = await api.db.write(statements);
      writes.push(written);
      return written;
    },
  };
  const end = (): void => {
    ended = true;
  };
  return { db, reads, writes, end };
}

async function inbox(id: string, received = 0): Promise<void> {
  await run(
    `INSERT INTO inboxes (id, sender_id, domain_id, address, type, received_count, created_at)
      VALUES (?1, ?2, ?3, ?1 || '@in.example.com', 'agent', ?4, 1)`,
    id,
    mine,
    domainId,
    received,
  );
}

async function outbound(id: string, threadId: string | null, at = NOW): Promise<void> {
  await run(
    `INSERT INTO messages (id, sender_id, direction, status, from_email, to_list, subject, thread_id, created_at)
      VALUES (?, ?, 'outbound', 'delivered', 'a@in.example.com', '[]', 's', ?, ?)`,
    id,
    mine,
    threadId,
    at,
  );
  await run("INSERT INTO message_content (message_id) VALUES (?)", id);
}

/** Makes that many events of a message, with ids in the order of their numbers. */
async function events(messageId: string, count: number): Promise<void> {
  await run(
    `INSERT INTO events (message_id, id, sender_id, type, email, created_at) ${numbers(count)}
      SELECT ?, printf('evt_%08d', n), ?, 'open', 'a@b.test', ? FROM numbers`,
    messageId,
    mine,
    NOW,
  );
}

describe("inboxes", () => {
  test("are listed completely, newest first, in steps that leave turns to other requests", async () => {
    const count = 2 * INBOXES_AT_A_TIME + 1;
    await run(
      `INSERT INTO inboxes (id, sender_id, domain_id, address, type, created_at) ${numbers(count)}
        SELECT printf('inb_%06d', n), ?, ?, printf('%06d@in.example.com', (n * 7919) % 1000003), 'agent', n FROM numbers`,
      mine,
      domainId,
    );
    for (const of of [null, domainId]) {
      const { db, reads, end } = watched();
      const found = await listInboxes(db, mine, of);
      end();
      expect(found.map(({ createdAt }) => createdAt)).toEqual(
        Array.from({ length: count }, (_, at) => count - at),
      );
      expect(reads.map(({ rows }) => rows)).toEqual([INBOXES_AT_A_TIME, INBOXES_AT_A_TIME, 1]);
      expect(new Set(reads.map(({ turn }) => turn)).size).toBe(reads.length);
    }
    expect(await listInboxes(api.db, mine, "dom_none")).toEqual([]);
    expect(await listInboxes(api.db, api.acme.b.id, domainId)).toEqual([]);
    await run("DELETE FROM inboxes WHERE sender_id = ?", mine);
  });

  const threads = (inboxId: string, count: number) =>
    api.db.write([
      {
        sql: `INSERT INTO threads (id, sender_id, inbox_id, subject, preview, last_message_at, created_at, updated_at)
          ${numbers(count)} SELECT ?1 || n, ?2, ?1, 's', 'p', 1, 1, 1 FROM numbers`,
        args: [inboxId, mine],
      },
      {
        sql: `INSERT INTO thread_references (inbox_id, rfc_message_id, sender_id, thread_id)
          ${numbers(count)} SELECT ?1, '<' || n || '@x>', ?2, ?1 || n FROM numbers`,
        args: [inboxId, mine],
      },
    ]);

  const messages = (inboxId: string, count: number) =>
    run(
      `INSERT INTO messages (id, sender_id, direction, status, from_email, to_list, subject, thread_id, inbox_id, created_at)
        ${numbers(count)} SELECT ?1 || 'msg' || n, ?2, 'outbound', 'delivered', 'a@in.example.com', '[]', 's', ?1 || n, ?1, 1
        FROM numbers`,
      inboxId,
      mine,
    );
  /** Begins to delete an inbox in a process that ends after the first write. */
  const beginDelete = async (id: string): Promise<void> => {
    let writes = 0;
    const write: Db["write"] = (statements) =>
      ++writes === 1 ? api.db.write(statements) : Promise.reject(new Error("ended"));
    expect(String(await reason(deleteInbox({ ...around(api.db), write }, mine, id)))).toContain("ended");
  };
  const step = (threadId: string, inboxId: string) => stepOf(threadId, inboxId, NOW);

  test("inboxes without mail are deleted with their threads, and no write changes more rows than the limit", async () => {
    await inbox("inb_sender");
    await threads("inb_sender", 2 * ROWS_PER_REMOVAL + 1);
    await messages("inb_sender", ROWS_PER_REMOVAL + 1);
    const { db, writes, end } = watched();
    expect(await deleteInbox(db, mine, "inb_sender")).toBe(true);
    end();
    expect(writes.map((written) => written.map(({ changes }) => changes))).toEqual([
      [1],
      [ROWS_PER_REMOVAL, ROWS_PER_REMOVAL, ROWS_PER_REMOVAL, 0],
      [1, ROWS_PER_REMOVAL, ROWS_PER_REMOVAL, 0],
      [0, 1, 1, 1],
    ]);
    for (const table of ["threads", "thread_references"])
      expect(await countOf(table, "inbox_id = 'inb_sender'")).toBe(0);
    expect(
      await countOf("messages", "id LIKE 'inb_sendermsg%' AND thread_id IS NULL AND inbox_id IS NULL"),
    ).toBe(ROWS_PER_REMOVAL + 1);
  });

  test("inboxes that are being deleted are invisible and receive no mail", async () => {
    await inbox("inb_going");
    await threads("inb_going", 2);
    await beginDelete("inb_going");
    expect(await getInbox(api.db, mine, "inb_going")).toBeNull();
    expect(await updateInbox(api.db, mine, "inb_going", { displayName: "x" })).toBeNull();
    expect(await listInboxes(api.db, mine, domainId)).toEqual([]);
    const question = { rfcMessageId: null, related: [], since: 0, limit: 1 };
    expect(await arrivalFacts(api.db, { id: "inb_going", senderId: mine }, question)).toBeNull();
    // Mail that was already on its way, to an existing thread and to a new one.
    for (const threadId of ["inb_going1", "thr_new"]) {
      const write = api.db.write([step(threadId, "inb_going"), countReceived(mine, "inb_going")]);
      expect(isBroken(await write.catch((error: unknown) => error), "inbox_deleted")).toBe(true);
    }
    expect(await countOf("inboxes", "address = 'inb_going@in.example.com'")).toBe(0);
    expect(await deleteInbox(api.db, mine, "inb_going")).toBe(true);
    expect(await countOf("threads", "inbox_id = 'inb_going'")).toBe(0);
  });

  test("inboxes whose deletion was interrupted are removed by the next process that starts", async () => {
    for (const id of ["inb_half", "inb_stays"]) {
      await inbox(id);
      await threads(id, 2);
    }
    await beginDelete("inb_half");
    await removeDeletedInboxes({ db: api.db, clock: manualClock() })();
    expect(await countOf("inboxes", "id = 'inb_half'")).toBe(0);
    expect(await countOf("threads", "inbox_id = 'inb_half'")).toBe(0);
    expect(await countOf("threads", "inbox_id = 'inb_stays'")).toBe(2);
  });

  test("inboxes of two deletions, one may finish while the other is half done", async () => {
    for (const id of ["inb_first", "inb_second"]) {
      await inbox(id);
      await threads(id, ROWS_PER_REMOVAL + 1);
      await beginDelete(id);
    }
    await removeInbox(api.db, "inb_first");
    expect(await countOf("inboxes", "id IN ('inb_first', 'inb_second')")).toBe(1);
    expect(await countOf("threads", "inbox_id = 'inb_second'")).toBe(ROWS_PER_REMOVAL + 1);
    await removeInbox(api.db, "inb_second");
    expect(await countOf("threads", "inbox_id = 'inb_second'")).toBe(0);
  });

  test("left half deleted by another process are removed by a running one, and their domain can be deleted", async () => {
    const clock = manualClock();
    const chore = removeDeletedInboxes({ db: api.db, clock });
    await chore();
    const { json: domain } = await api.call("POST", "/v1/domains", { body: { domain: "half.example.com" } });
    await inbox("inb_left");
    await run("UPDATE inboxes SET domain_id = ? WHERE id = 'inb_left'", domain.id);
    await threads("inb_left", 2);
    await beginDelete("inb_left");
    clock.advance(INBOXES_PAUSE_MS - 1);
    await chore();
    expect((await api.call("DELETE", `/v1/domains/${domain.id}`)).status).toBe(409);
    clock.advance(1);
    await chore();
    expect(await countOf("threads", "inbox_id = 'inb_left'")).toBe(0);
    expect((await api.call("DELETE", `/v1/domains/${domain.id}`)).status).toBe(204);
  });

  test("inboxes that have received, or belong to another project, keep their threads", async () => {
    await inbox("inb_received", 1);
    await threads("inb_received", ROWS_PER_REMOVAL);
    expect(await deleteInbox(api.db, mine, "inb_received")).toBe(false);
    await inbox("inb_others");
    await threads("inb_others", ROWS_PER_REMOVAL);
    expect(await deleteInbox(api.db, api.acme.b.id, "inb_others")).toBe(false);
    for (const id of ["inb_received", "inb_others"])
      for (const table of ["threads", "thread_references"])
        expect(await countOf(table, `inbox_id = '${id}'`)).toBe(ROWS_PER_REMOVAL);
  });
});

describe("events of a message", () => {
  test("events of a message are read completely, oldest first, in steps that leave turns to other requests", async () => {
    await outbound("msg_events", null);
    const count = 2 * EVENTS_AT_A_TIME;
    await events("msg_events", count);
    const { db, reads, end } = watched();
    const found = await listEvents(db, mine, "msg_events");
    end();
    expect(found.map(({ id }) => Number(id.slice(4)))).toEqual(
      Array.from({ length: count }, (_, at) => at + 1),
    );
    expect(reads.map(({ rows }) => rows)).toEqual([EVENTS_AT_A_TIME, EVENTS_AT_A_TIME, 0]);
    expect(new Set(reads.map(({ turn }) => turn)).size).toBe(reads.length);
    const first = await listEvents(api.db, mine, "msg_events", EVENTS_AT_A_TIME + 1);
    expect(first.map(({ id }) => id)).toEqual(found.slice(0, EVENTS_AT_A_TIME + 1).map(({ id }) => id));
  });

  test("events of a message are shown in a conversation up to a limit, and a message that has more says so", async () => {
    const counts = { msg_all: MAX_EVENTS_SHOWN, msg_more: MAX_EVENTS_SHOWN + 1 };
    for (const [id, count] of Object.entries(counts)) {
      await outbound(id, "thr_events");
      await events(id, count);
    }
    const deps: LargeContents = {
      db: api.db,
      objects: null,
      memory: { largeReads: new Admission(LARGE_READS) },
    };
    const shown = await showConversation(deps, mine, Object.keys(counts));
    expect(shown.map(({ truncated }) => truncated)).toEqual([undefined, true]);
    for (const { events } of shown)
      expect((events as { id: string }[]).map(({ id }) => Number(id.slice(4)))).toEqual(
        Array.from({ length: MAX_EVENTS_SHOWN }, (_, at) => at + 1),
      );
  });
});

/** Changes that a message received at a time makes to its thread. */
function stepOf(threadId: string, inboxId: string, at: number, messageId = "msg_1"): Statement {
  return stepThread({
    threadId,
    inboxId,
    senderId: mine,
    messageId,
    subject: "",
    preview: `of ${messageId}`,
    participants: [],
    hasAttachments: false,
    inbound: true,
    at,
  });
}

/** An inbound message of `inb_mail`. */
async function inbound(id: string, threadId: string, rfcMessageId: string, at: number): Promise<void> {
  await run(
    `INSERT INTO messages (id, sender_id, direction, status, from_email, to_list, subject, thread_id, inbox_id,
        rfc_message_id, created_at)
      VALUES (?, ?, 'inbound', 'delivered', 'p@peer.test', '[]', 's', ?, 'inb_mail', ?, ?)`,
    id,
    mine,
    threadId,
    rfcMessageId,
    at,
  );
}

async function thread(id: string, lastInboundAt: number | null): Promise<void> {
  await run(
    `INSERT INTO threads (id, sender_id, inbox_id, subject, preview, last_message_at, last_inbound_at, created_at, updated_at)
      VALUES (?, ?, 'inb_mail', 's', 'p', 1, ?, 1, 1)`,
    id,
    mine,
    lastInboundAt,
  );
}

describe("a thread of many messages", () => {
  beforeAll(() => inbox("inb_mail", 1));

  test("a thread of many messages is answered at its newest inbound one, even if an older one reached the database later", async () => {
    const ids = [newId("msg", NOW), newId("msg", NOW + 5)] as const;
    for (const [at, id] of ids.entries()) await inbound(id, "thr_late", `<late${at}@x>`, NOW + 5 * at);
    for (const at of [NOW + 5, NOW]) await api.db.write([stepOf("thr_late", "inb_mail", at)]);
    expect(await getThread(api.db, mine, "thr_late")).toMatchObject({
      lastMessageAt: NOW + 5,
      lastInboundAt: NOW + 5,
      updatedAt: NOW + 5,
    });
    expect(await lastMessageId(api.db, mine, "thr_late")).toBe(ids[1]);
  });

  test("previews the one of a millisecond that it lists last", async () => {
    for (const id of ["msg_2", "msg_3", "msg_1"])
      await api.db.write([stepOf("thr_even", "inb_mail", NOW, id)]);
    expect(await getThread(api.db, mine, "thr_even")).toMatchObject({
      lastMessageId: "msg_3",
      preview: "of msg_3",
      messageCount: 3,
    });
  });

  test("a thread of many messages is answered at its last inbound one, or else its last, without reading through our own", async () => {
    const id = (at: number) => newId("msg", at);
    await thread("thr_answered", NOW + 1);
    const [first, second] = [id(NOW), id(NOW + 1)];
    await inbound(first, "thr_answered", "<a@x>", NOW);
    await inbound(second, "thr_answered", "<b@x>", NOW + 1);
    for (let at = 2; at < 5; at++) await outbound(id(NOW + at), "thr_answered", NOW + at);
    const below: unknown[] = [];
    const db: Db = {
      ...around(api.db),
      first<Row>(sql: string, args?: (string | number | null)[]) {
        if (sql.includes("'inbound'")) below.push(args?.[2]);
        return api.db.first<Row>(sql, args);
      },
    };
    expect(await lastMessageId(db, mine, "thr_answered")).toBe(second);
    await thread("thr_ours", null);
    const last = id(NOW + 9);
    for (const ours of [id(NOW + 8), last]) await outbound(ours, "thr_ours");
    expect(await lastMessageId(db, mine, "thr_ours")).toBe(last);
    // If the thread has received nothing, no search happens. Otherwise it starts at the time of the last inbound
    // message.
    expect(below).toEqual([idFloor("msg", NOW + 2)]);
    // Its inbound messages have been removed since.
    await run("DELETE FROM messages WHERE id IN (?, ?)", first, second);
    expect(await lastMessageId(api.db, mine, "thr_answered")).toBe(
      (
        await api.db.first<{ id: string }>(
          "SELECT max(id) AS id FROM messages WHERE thread_id = 'thr_answered'",
        )
      )?.id ?? "",
    );
  });

  test("a thread of many messages with one Message-ID is compared with the newest of them, found without sorting all", async () => {
    const limit = 5;
    for (let n = 0; n < 2 * limit; n++) await inbound(`msg_same_${n}`, "thr_same", "<same@x>", NOW + n);
    const question = { rfcMessageId: "<same@x>", related: ["<same@x>"], limit };
    const ask = async (since: number, db: Db = api.db) =>
      (await arrivalFacts(db, { id: "inb_mail", senderId: mine }, { ...question, since }))?.earlier.map(
        ({ messageId }) => messageId,
      );
    const newest = [9, 8, 7, 6, 5].map((n) => `msg_same_${n}`);
    const asked: string[] = [];
    const db: Db = {
      ...around(api.db),
      first<Row>(sql: string, args?: (string | number | null)[]) {
        asked.push(sql);
        return api.db.first<Row>(sql, args);
      },
    };
    expect(await ask(NOW - 1, db)).toEqual(newest);
    expect(await ask(NOW + 7)).toEqual(newest.slice(0, 2));
    const sql = asked.find((text) => text.includes("json_group_array")) ?? "";
    const plan = await api.db.all<{ id: number; parent: number; detail: string }>(
      `EXPLAIN QUERY PLAN ${sql}`,
      ["inb_mail", mine, "[]", "<same@x>", 0, limit],
    );
    const inner = plan.findLast(({ detail }) =>
      detail.startsWith("SEARCH messages USING INDEX messages_by_rfc_id"),
    );
    expect(inner).toBeDefined();
    // A sort of the index result would be a second one. The existing sort orders the five rows.
    expect(
      plan.filter(({ parent, detail }) => parent === inner?.parent && detail.includes("B-TREE")),
    ).toEqual([]);
  });
});
