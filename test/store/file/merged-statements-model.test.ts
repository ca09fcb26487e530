import { expect, test } from "bun:test";
import { join } from "node:path";
import { systemClock } from "../../../src/clock.ts";
import { untakenGuard } from "../../../src/store/messages/arrivals.ts";
import { type HashedContent, newContent, ofProject } from "../../../src/store/contents/content-bytes.ts";
import { releaseContents } from "../../../src/store/messages/content-release.ts";
import { type Db, overEngine, type Statement } from "../../../src/store/engine/client.ts";
import { openEmbedded } from "../../../src/store/embedded/embedded.ts";
import { migrate } from "../../../src/store/engine/migrate.ts";
import { insertEvents } from "../../../src/store/events/events.ts";
import { countReceived } from "../../../src/store/threads/inboxes.ts";
import { insertMessage } from "../../../src/store/messages/messages.ts";
import { deleteEmptied, deleteMessages, uncountFromThreads } from "../../../src/store/messages/retention.ts";
import { insertProject } from "../../../src/store/projects/projects.ts";
import { fewSentGuard } from "../../../src/store/threads/thread-volume.ts";
import { rememberReferences, stepThread } from "../../../src/store/threads/threads.ts";
import { takeUsage } from "../../../src/store/projects/usage.ts";
import { insertDeliveries } from "../../../src/store/webhooks/webhook-deliveries.ts";
import { testSender } from "../../support/api.ts";
import { type Chance, chanceOf } from "../../support/chance.ts";
import { newDataFolder, removeFolder } from "../../support/folder.ts";
import { message } from "../../support/lists.ts";

const NOW = 1_750_000_000_000;
const SEEDS = 6;
const ROUNDS = 12;
const EVER = { floor: "msg_", ceiling: "msg~" };
const INBOXES = ["inb_0", "inb_1", "inb_2"] as const;
const WEBHOOKS = ["whk_0", "whk_1"] as const;
const project = testSender("acc_1", "project", NOW);
const senderId = project.id;

/** Makes the writers of one run, equal for equal seeds. */
class Writers {
  readonly #chance: Chance;
  /**
   * Message-IDs, and how many messages carried each before this commit. Within a process messages with equal ones
   * never commit together.
   */
  #carried = 0;
  #before = 0;
  #made = 0;

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  some(): Statement[][] {
    this.#before = this.#carried;
    const chance = this.#chance;
    const others = chance.pick([0, 0.1, 0.3]);
    return Array.from({ length: 1 + chance.below(20) }, () => {
      if (chance.happens(others)) return this.#other();
      return chance.happens(0.6) ? this.#arrival() : this.#send();
    });
  }

  #content(...texts: [string, ...string[]]): HashedContent {
    return ofProject(senderId, newContent(Buffer.from(this.#chance.pick(texts))));
  }

  /** A message for one inbox or two, of which the second refers to the contents of the first. */
  #arrival(): Statement[] {
    const chance = this.#chance;
    const again = this.#before > 0 && chance.happens(0.3);
    const rfcMessageId = `<${again ? chance.below(this.#before) : this.#carried++}@x>`;
    let raw = this.#content("same", `own ${this.#made}`);
    const inboxes = new Set([chance.pick(INBOXES), ...(chance.happens(0.3) ? [chance.pick(INBOXES)] : [])]);
    return [...inboxes].flatMap((inboxId) => {
      const id = `msg_${this.#made++}`;
      const threadId = chance.happens(0.5) ? `thr_${inboxId}_${chance.below(3)}` : `thr_${id}`;
      const createdAt = NOW + chance.below(5);
      const inbound = { direction: "inbound", rfcMessageId, threadId, inboxId, createdAt } as const;
      const untaken = untakenGuard({ inboxId, senderId, rfcMessageId, raw: raw.key, since: 0, limit: 5 });
      const guard = { ...untaken, orderIndependent: true };
      const stored = insertMessage(message(senderId, { id, ...inbound }), { body: null, raw }, [], guard);
      raw = { ...raw, bytes: null };
      const names = chance.happens(0.5) ? [`<named ${chance.below(9)}@x>`] : [];
      const event = { id: `evt_${id}`, senderId, messageId: id, type: "inbound_received" } as const;
      const deliveries = WEBHOOKS.slice(0, chance.below(3)).map((webhookId) => ({
        id: `dlv_${id}_${webhookId}`,
        webhookId,
        event,
      }));
      return [
        ...stored,
        stepThread({
          threadId,
          inboxId,
          senderId,
          messageId: id,
          subject: chance.pick(["", id]),
          preview: id,
          participants: [`${chance.below(60)}@x`],
          hasAttachments: false,
          inbound: true,
          at: createdAt,
        }),
        ...rememberReferences({ senderId, inboxId, threadId }, names),
        countReceived(senderId, inboxId),
        insertEvents([{ ...event, email: null, data: {}, createdAt }]),
        ...insertDeliveries(deliveries, NOW),
      ];
    });
  }

  /** A reply in a thread that accepts four. */
  #send(): Statement[] {
    const id = `msg_${this.#made++}`;
    const inboxId = this.#chance.pick(INBOXES);
    const threadId = `thr_${inboxId}_${this.#chance.below(3)}`;
    const sent = message(senderId, { id, threadId, inboxId, rfcMessageId: `<${id}@x>`, createdAt: NOW });
    const guard = this.#chance.happens(0.7) ? fewSentGuard(senderId, threadId, EVER, 4) : null;
    return [
      takeUsage(senderId, "2026-11-22", 1, null),
      ...insertMessage(sent, { body: this.#content("same", "other") }, [], guard),
      stepThread({
        threadId,
        inboxId,
        senderId,
        messageId: id,
        subject: "s",
        preview: id,
        participants: ["a@x"],
        hasAttachments: false,
        inbound: false,
        at: NOW,
      }),
      ...rememberReferences({ senderId, inboxId, threadId }, [`<named ${this.#chance.below(9)}@x>`]),
    ];
  }

  /** Deletes rows that other writers refer to. */
  #other(): Statement[] {
    const chance = this.#chance;
    const id = chance.pick(INBOXES);
    const webhook = chance.pick(WEBHOOKS);
    const ids = [0, 1, 2].map(() => `msg_${chance.below(this.#made + 1)}`);
    const threads = INBOXES.flatMap((inbox) => [0, 1, 2].map((n) => `thr_${inbox}_${n}`));
    const limit = chance.below(6);
    const mark = "UPDATE inboxes SET address = id WHERE id = ? AND received_count < ?";
    const unmark = "UPDATE inboxes SET address = id || '@in.test' WHERE id = ?";
    return chance.pick<Statement[]>([
      [{ sql: mark, args: [id, limit] }],
      [{ sql: unmark, args: [id] }],
      [{ sql: "UPDATE webhooks SET deleted_at = iif(deleted_at, NULL, 1) WHERE id = ?", args: [webhook] }],
      [
        uncountFromThreads(threads, ids),
        releaseContents(ids, NOW),
        deleteMessages(ids),
        ...deleteEmptied(threads),
      ],
    ]);
  }
}

const TABLES = ["messages", "message_content", "contents", "events", "webhook_deliveries", "threads"].concat([
  "thread_references",
  "inboxes",
  "usage",
  "stats",
]);
const NAMED = `(SELECT count(*) FROM message_content WHERE body = key) + (SELECT count(*) FROM message_content WHERE raw = key)`;

/** All rows by their values, without the numbers of contents. */
async function rowsOf(db: Db): Promise<string[]> {
  const rows = TABLES.map(async (table) => {
    const all = await db.all<Record<string, unknown>>(`SELECT * FROM ${table}`);
    return all.map((row) => {
      const values = Object.entries(row).filter(([name]) => table !== "contents" || name !== "id");
      const plain = values.map(([, value]) =>
        value instanceof ArrayBuffer ? new Uint8Array(value).toHex() : value,
      );
      return JSON.stringify([table, ...plain]);
    });
  });
  return (await Promise.all(rows)).flat().sort();
}

function endOf(result: PromiseSettledResult<unknown>): string {
  return result.status === "fulfilled" ? "stored" : String(result.reason);
}

async function opened(path: string, joins: boolean): Promise<Db> {
  const engine = openEmbedded(systemClock, { path, writer: null });
  const alone = (statements: readonly Statement[]) =>
    engine.batch(statements.map(({ sql, args }) => ({ sql, args })));
  const db = overEngine(joins ? engine : { ...engine, batch: alone }, systemClock);
  await migrate(db, 1);
  const text = (sql: string): Statement => ({ sql, args: [] });
  await db.write([
    text("INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc_1', 'a', 'o@x.test', 1)"),
    insertProject(project),
    text(`INSERT INTO domains (id, account_id, sender_id, name, status, receiving, created_at)
      VALUES ('dom_1', 'acc_1', '${senderId}', 'in.test', 'verified', 1, 1)`),
    ...INBOXES.map((id) =>
      text(`INSERT INTO inboxes (id, sender_id, domain_id, address, type, created_at)
        VALUES ('${id}', '${senderId}', 'dom_1', '${id}@in.test', 'agent', 1)`),
    ),
    ...WEBHOOKS.map((id) =>
      text(`INSERT INTO webhooks (id, sender_id, url, event_types, secret, created_at, updated_at)
        VALUES ('${id}', '${senderId}', 'https://hook.test', '[]', 's', 1, 1)`),
    ),
  ]);
  return db;
}

test("messages, replies and deletions that commit together end as they would row by row", async () => {
  const seen = { stored: 0, refused: 0 };
  for (let seed = 1; seed <= SEEDS; seed++) {
    const folder = newDataFolder("together-model");
    const [joined, alone] = [
      await opened(join(folder, "joined.db"), true),
      await opened(join(folder, "alone.db"), false),
    ];
    const writers = new Writers(chanceOf(seed));
    for (let round = 0; round < ROUNDS; round++) {
      const writes = writers.some();
      const [some, others] = await Promise.all(
        [joined, alone].map((db) => Promise.allSettled(writes.map((write) => db.write(write)))),
      );
      const ends = (some ?? []).map(endOf);
      expect({ seed, round, ends }).toEqual({ seed, round, ends: (others ?? []).map(endOf) });
      for (const end of ends) seen[end === "stored" ? "stored" : "refused"]++;
      expect(await rowsOf(joined)).toEqual(await rowsOf(alone));
      expect(await joined.all(`SELECT refs, ${NAMED} AS named FROM contents WHERE refs <> named`)).toEqual(
        [],
      );
    }
    for (const db of [joined, alone]) await db.close();
    removeFolder(folder);
  }
  expect(seen.stored).toBeGreaterThan(300);
  expect(seen.refused).toBeGreaterThan(50);
});
