import { newId } from "../../src/core/ids.ts";
import type { Db, Statement } from "../../src/store/engine/client.ts";
import { indexWaiting } from "../../src/store/search/message-index.ts";
import { listMessages, type MessageFilter } from "../../src/store/lists/message-list.ts";
import { insertMessage, type Message, NOT_SENT } from "../../src/store/messages/messages.ts";
import { testDatabase } from "./database.ts";

/** Returns the statement that stores the listed and searched columns of a message, without its content. */
export function insertListed(message: Message): Statement {
  const [listed] = insertMessage(message, { body: null }, []);
  if (listed === undefined) throw new Error("a message without a statement");
  return listed;
}

/** Time of the first message. Each later one is a millisecond newer. */
export const NOW = Date.parse("2026-03-01T12:00:00Z");

let made = 0;

/** A typical message of the project, with the given changes. */
export function message(senderId: string, given: Partial<Message> = {}): Message {
  const createdAt = given.createdAt ?? NOW + made++;
  return {
    id: newId("msg", createdAt),
    senderId,
    direction: "outbound",
    status: "delivered",
    from: { email: "news@shop.example" },
    to: [{ email: "ann@home.example" }],
    cc: [],
    bcc: [],
    replyTo: [],
    subject: "Hello",
    tags: [],
    rfcMessageId: null,
    inReplyTo: null,
    threadId: null,
    inboxId: null,
    ...NOT_SENT,
    trust: null,
    size: 0,
    testMode: false,
    createdAt,
    ...given,
  };
}

/** Gives messages of one time ids that share a position in the index if they are late. */
export function sharingPosition(messages: readonly Message[]): Message[] {
  return messages.map((one) => ({ ...one, id: `${one.id.slice(0, -4)}0000` }));
}

/** A database of messages for tests of lists and search. */
export interface Lists {
  db: Db;
  url: string;
  /** Opens the database as another process would. The caller closes it. */
  another(): Promise<Db>;
  /** Resolves when this database can read the writes of other processes. */
  caughtUp(reader?: Db): Promise<void>;
  /** Makes a project and returns its id. */
  project(): Promise<string>;
  /** Makes a project with an inbox and returns both ids. */
  inbox(): Promise<{ senderId: string; inboxId: string }>;
  store(messages: readonly Message[]): Promise<void>;
  /** Adds every waiting message to the index. */
  index(): Promise<void>;
  /** Sets the status of stored messages to the one that they have here. */
  settle(messages: readonly Message[]): Promise<void>;
  /** Messages of the project that are not indexed yet. */
  waitingOf(senderId: string): Promise<number>;
  /** Messages of the project that have the term in the index. */
  listedBy(senderId: string, term: string): Promise<number>;
  /** Reads all pages of a list. Runs `between` between two pages. */
  paged(
    senderId: string,
    filter: MessageFilter,
    rows: number,
    between?: () => Promise<unknown>,
  ): Promise<string[]>;
  remove(): Promise<void>;
}

/** Statements of one write at most. */
const PER_WRITE = 500;

/** Opens lists over a database of the chosen engine, which holds one account and nothing else. */
export async function openLists(): Promise<Lists> {
  const database = await testDatabase();
  const { db, url } = database;
  await db.write([
    {
      sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc', 'a', 'o@a.example', 0)",
      args: [],
    },
  ]);
  const count = async (sql: string, args: string[]): Promise<number> =>
    (await db.first<{ count: number }>(sql, args))?.count ?? 0;
  const project = async (): Promise<string> => {
    const id = newId("snd", NOW);
    await db.write([
      {
        sql: `INSERT INTO senders (id, account_id, external_id, name, plan, trust_tier, created_at)
          VALUES (?, 'acc', ?, 'p', 'pro', 'new', 0)`,
        args: [id, id],
      },
    ]);
    return id;
  };
  return {
    db,
    url,
    project,
    another: () => database.another(),
    caughtUp: (reader) => database.caughtUp(reader),
    async inbox() {
      const senderId = await project();
      const [domainId, inboxId] = [newId("dom", NOW), newId("inb", NOW)];
      await db.write([
        {
          sql: `INSERT INTO domains (id, sender_id, account_id, name, status, created_at)
            VALUES (?, ?, 'acc', ?, 'verified', 0)`,
          args: [domainId, senderId, `${senderId}.test`],
        },
        {
          sql: `INSERT INTO inboxes (id, sender_id, domain_id, address, type, created_at)
            VALUES (?, ?, ?, 'box@in.test', 'agent', 1)`,
          args: [inboxId, senderId, domainId],
        },
      ]);
      return { senderId, inboxId };
    },
    async store(messages) {
      for (let at = 0; at < messages.length; at += PER_WRITE)
        await db.write(messages.slice(at, at + PER_WRITE).map(insertListed));
    },
    async index() {
      while ((await indexWaiting(db, PER_WRITE)) > 0);
    },
    async settle(messages) {
      await db.write(
        messages.map(({ id, status }) => ({
          sql: "UPDATE messages SET status = ? WHERE id = ?",
          args: [status, id],
        })),
      );
    },
    waitingOf: (senderId) =>
      count("SELECT count(*) AS count FROM messages WHERE sender_id = ? AND position IS NULL", [senderId]),
    listedBy: (senderId, term) =>
      count("SELECT count(*) AS count FROM message_terms WHERE message_terms MATCH ?", [
        `"${senderId.slice(-5)}${term}"`,
      ]),
    async paged(senderId, filter, rows, between = async () => undefined) {
      const ids: string[] = [];
      for (let before: string | null = null; ; await between()) {
        const page = await listMessages(db, senderId, filter, before, rows);
        ids.push(...page.messages.map(({ id }) => id));
        const full = page.messages.length === rows;
        if (!full && page.stoppedAt === null) return ids;
        before = full ? (ids.at(-1) ?? null) : page.stoppedAt;
      }
    },
    remove: () => database.remove(),
  };
}
