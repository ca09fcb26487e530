import { afterAll, beforeAll, expect, test } from "bun:test";
import { idCeiling, newId } from "../../src/core/ids.ts";
import { listContacts } from "../../src/store/projects/contacts.ts";
import { listDeliveries } from "../../src/store/webhooks/delivery-log.ts";
import { listDomains } from "../../src/store/domains/domains.ts";
import type { Db, Value } from "../../src/store/engine/client.ts";
import { listKeys } from "../../src/store/projects/keys.ts";
import { listSentOrReceived } from "../../src/store/lists/sent-and-received.ts";
import { listSuppressions } from "../../src/store/projects/suppressions.ts";
import { listTemplateNames, listTemplates } from "../../src/store/projects/templates.ts";
import { listThreadMessageIds } from "../../src/store/threads/threads.ts";
import { listWebhooks } from "../../src/store/webhooks/webhooks.ts";
import { around } from "../support/around.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.remove());

/** SQLite's query plan for the reads of `list`. */
async function planOf(list: (db: Db) => Promise<unknown>): Promise<string[]> {
  const read: { sql: string; args: Value[] }[] = [];
  const all = async <Row>(sql: string, args: Value[] = []): Promise<Row[]> => {
    read.push({ sql, args });
    return [];
  };
  await list({ ...around(database.db), all });
  expect(read.length).toBe(1);
  const [{ sql, args } = { sql: "", args: [] }] = read;
  const steps = await database.db.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, args);
  return steps.map(({ detail }) => detail);
}

const LISTS: [of: string, list: (db: Db) => Promise<unknown>][] = [
  ["keys", (db) => listKeys(db, { accountId: "acc", senderId: null }, "all", idCeiling("key"), 20)],
  ["domains", (db) => listDomains(db, "snd", idCeiling("dom"), 20)],
  ["templates", (db) => listTemplates(db, "snd", idCeiling("tpl"), 20)],
  ["webhooks", (db) => listWebhooks(db, "snd", idCeiling("whk"), 20)],
  ["deliveries", (db) => listDeliveries(db, "snd", "whk", {}, idCeiling("dlv"), 20)],
  [
    "deliveries of a message",
    (db) =>
      listDeliveries(
        db,
        "snd",
        "whk",
        { status: "failed", messageId: newId("msg", 1) },
        idCeiling("dlv"),
        20,
      ),
  ],
  ["contacts", (db) => listContacts(db, "snd", {}, idCeiling("con"), 20)],
  ["suppressions", (db) => listSuppressions(db, "snd", {}, 0, idCeiling("sup"), 20)],
  ["template names", (db) => listTemplateNames(db, "snd", idCeiling("tpl"), 20)],
  ["sent messages", (db) => listSentOrReceived(db, "snd", "sent", null, 20)],
  ["received messages", (db) => listSentOrReceived(db, "snd", "received", null, 20)],
  ["messages of a thread", (db) => listThreadMessageIds(db, "snd", "thr", idCeiling("msg"), 20)],
];

const ABOVE = { above: "a" };
const UPWARDS: [of: string, list: (db: Db) => Promise<unknown>][] = [
  ["keys", (db) => listKeys(db, { accountId: "acc", senderId: null }, "unrevoked", ABOVE, 20)],
  ["domains", (db) => listDomains(db, "snd", ABOVE, 20)],
  ["templates", (db) => listTemplateNames(db, "snd", ABOVE, 20)],
  ["webhooks", (db) => listWebhooks(db, "snd", ABOVE, 20, "resend")],
  ["deliveries", (db) => listDeliveries(db, "snd", "whk", {}, ABOVE, 20)],
  ["contacts", (db) => listContacts(db, "snd", {}, ABOVE, 20)],
  ["sent messages", (db) => listSentOrReceived(db, "snd", "sent", ABOVE, 20)],
  ["received messages", (db) => listSentOrReceived(db, "snd", "received", ABOVE, 20)],
];

test.each(UPWARDS)("a page of %s above an id starts there in an index", async (_, list) => {
  const steps = await planOf(list);
  expect(steps.filter((step) => /\bid>\?/.test(step))).toHaveLength(1);
  expect(steps.filter((step) => /^SCAN|TEMP B-TREE/.test(step))).toEqual([]);
});

test.each(LISTS)(
  "a page of %s starts at its place in an index, however far down that is",
  async (_, list) => {
    const steps = await planOf(list);
    expect(steps.filter((step) => /\bid<\?/.test(step))).toHaveLength(1);
    expect(steps.filter((step) => /^SCAN|TEMP B-TREE/.test(step))).toEqual([]);
  },
);
