import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { ConstraintError } from "../../src/store/engine/client.ts";
import {
  type Contact,
  type ContactFilter,
  deleteContact,
  getContact,
  insertContact,
  listContacts,
  NOT_ENGAGED,
  setSubscribed,
  unsubscribeAddress,
  updateContact,
} from "../../src/store/projects/contacts.ts";
import { MAX_SCANNED, SCAN_STEP } from "../../src/store/matching/steps.ts";
import { containsText } from "../../src/store/matching/substring.ts";
import { fileTest, test } from "../support/engine-test.ts";
import { leftOut } from "../support/blocked.ts";
import { type TestApi, testApi } from "../support/api.ts";

setDefaultTimeout(60_000);

const NOW = 1_750_000_000_000;
let api: TestApi;
let mine: string;
let theirs: string;
beforeAll(async () => {
  api = await testApi();
  mine = api.acme.a.id;
  theirs = api.acme.b.id;
});
afterAll(() => api.close());

function contact(name: string, changes: Partial<Contact> = {}): Contact {
  return {
    id: `con_${name}`,
    senderId: mine,
    email: `${name}@Example.com`,
    emailKey: `${name}@example.com`,
    firstName: "F",
    lastName: null,
    subscribed: true,
    unsubscribedAt: null,
    metadata: { a: [1, null] },
    properties: {},
    topics: {},
    consent: [],
    ...NOT_ENGAGED,
    createdAt: NOW,
    updatedAt: NOW,
    ...changes,
  };
}

const entry = (subscribed: boolean, at: number) => ({ at, subscribed, how: "api" });
const save = (...contacts: Contact[]) => api.db.write(contacts.map(insertContact));

test("a contact can be read, changed, unsubscribed and deleted only in its own project", async () => {
  const saved = contact("own");
  await save(saved);
  const { db } = api;
  expect(await getContact(db, mine, saved.id)).toEqual(saved);
  expect(await getContact(db, theirs, saved.id)).toBeNull();
  expect(await updateContact(db, theirs, saved.id, { firstName: "X" }, NOW + 1)).toBeNull();
  expect(await setSubscribed(db, theirs, saved.id, entry(false, NOW + 1))).toBeNull();
  expect(await deleteContact(db, theirs, saved.id)).toBe(false);
  expect(await getContact(db, mine, saved.id)).toEqual(saved);
  expect(await deleteContact(db, mine, saved.id)).toBe(true);
  expect(await deleteContact(db, mine, saved.id)).toBe(false);
});

test("an address can be a contact once in a project", async () => {
  await save(contact("taken"));
  const error = await save(contact("taken2", { emailKey: "taken@example.com" })).catch(
    (thrown: unknown) => thrown,
  );
  expect(error instanceof ConstraintError && error.unique).toBe("contacts.sender_id, contacts.email_key");
  await save(contact("taken3", { emailKey: "taken@example.com", senderId: theirs }));
});

test("a change sets the given fields and leaves the rest", async () => {
  const saved = contact("change");
  await save(saved);
  const change = (changes: Parameters<typeof updateContact>[3]) =>
    updateContact(api.db, mine, saved.id, changes, NOW + 1);
  expect(await change({})).toEqual(saved);
  expect(await change({ firstName: null })).toEqual({ ...saved, firstName: null, updatedAt: NOW + 1 });
  expect(await change({ lastName: "L", metadata: {} })).toMatchObject({
    firstName: null,
    lastName: "L",
    metadata: {},
  });
});

test("unsubscribing or subscribing twice keeps the first time", async () => {
  const saved = contact("twice");
  await save(saved);
  const set = (subscribed: boolean, at: number) =>
    setSubscribed(api.db, mine, saved.id, entry(subscribed, at));
  const left = {
    ...saved,
    subscribed: false,
    unsubscribedAt: NOW + 1,
    updatedAt: NOW + 1,
    consent: [entry(false, NOW + 1)],
  };
  expect(await set(true, NOW + 9)).toEqual(saved);
  expect(await set(false, NOW + 1)).toEqual(left);
  expect(await set(false, NOW + 2)).toEqual(left);
  expect(await set(true, NOW + 3)).toEqual({
    ...saved,
    updatedAt: NOW + 3,
    consent: [entry(false, NOW + 1), entry(true, NOW + 3)],
  });
});

describe("unsubscribing an address", () => {
  const unsubscribe = (given: Contact) => api.db.write([unsubscribeAddress(given)]);

  test("unsubscribing an address makes the contact if there is none", async () => {
    await unsubscribe(contact("new"));
    expect(await getContact(api.db, mine, "con_new")).toEqual(
      contact("new", { subscribed: false, unsubscribedAt: NOW }),
    );
  });

  test("unsubscribing an address leaves the other fields of an existing contact, and the time if it was already unsubscribed", async () => {
    const saved = contact("old");
    await save(saved);
    const consent = [{ ...entry(false, NOW + 1), how: "page" }];
    const left = { ...saved, subscribed: false, unsubscribedAt: NOW + 1, updatedAt: NOW + 1, consent };
    for (const at of [NOW + 1, NOW + 2])
      await unsubscribe(
        contact("other", { emailKey: saved.emailKey, firstName: "X", updatedAt: at, consent }),
      );
    expect(await getContact(api.db, mine, saved.id)).toEqual(left);
    expect(await getContact(api.db, mine, "con_other")).toBeNull();
  });

  test("affects only the sends of its project", async () => {
    await save(
      contact("stays"),
      contact("leaves"),
      contact("stays2", { senderId: theirs, emailKey: "leaves@example.com" }),
    );
    await unsubscribe(contact("leaves"));
    const keys = ["stays@example.com", "leaves@example.com", "unknown@example.com"];
    const seen = async (senderId: string, asked: string[]) =>
      (await leftOut(api.db, senderId, asked, NOW)).unsubscribed;
    expect(await seen(mine, keys)).toEqual(new Set(["leaves@example.com"]));
    expect(await seen(theirs, keys)).toEqual(new Set());
    expect(await seen(mine, [])).toEqual(new Set());
  });
});

test.each([
  ["bücher", true],
  ["zoe@BÜCHER", true],
  ["@bücher.example", true],
  ["xn--bcher", true],
  ["bücherei", false],
  ["zoé", false],
])("a contact at a domain beyond ASCII is found by %p: %p", async (q, found) => {
  await save(contact("idn", { emailKey: "zoe@xn--bcher-kva.example", email: "zoe@xn--bcher-kva.example" }));
  const { rows } = await listContacts(api.db, mine, { q }, null, 9);
  expect(rows.map(({ id }) => id)).toEqual(found ? ["con_idn"] : []);
  await deleteContact(api.db, mine, "con_idn");
});

test("contacts are listed newest first, in pages, and only the project's own", async () => {
  const senderId = api.other.a.id;
  await save(
    ...["1", "2", "3"].map((name) => contact(`list${name}`, { senderId, subscribed: name !== "2" })),
  );
  const ids = async (filter: Parameters<typeof listContacts>[2], after: string | null, take: number) =>
    (await listContacts(api.db, senderId, filter, after, take)).rows.map(({ id }) => id);
  expect(await ids({}, null, 2)).toEqual(["con_list3", "con_list2"]);
  expect(await ids({}, "con_list2", 2)).toEqual(["con_list1"]);
  expect(await ids({ subscribed: true }, null, 9)).toEqual(["con_list3", "con_list1"]);
  expect(await ids({ subscribed: false, q: "LIST" }, null, 9)).toEqual(["con_list2"]);
});

fileTest(
  "contacts are searched as far as one page goes, and the next page continues without a gap",
  async () => {
    const senderId = api.other.b.id;
    // One past the limit: the oldest is not read.
    await api.db.write([
      {
        sql: `INSERT INTO contacts (id, sender_id, email, email_key, subscribed, created_at, updated_at)
        WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)
        SELECT printf('con_many%06d', n), ?2, 'p' || n || '@many.example', 'p' || n || '@many.example', n % 50000 <> 1, 0, 0
          FROM numbers`,
        args: [MAX_SCANNED, senderId],
      },
    ]);
    const page = async (filter: ContactFilter, after: string | null) => {
      const { rows, stoppedAt } = await listContacts(api.db, senderId, filter, after, 3);
      return [rows.map(({ email }) => email.slice(0, -"@many.example".length)), stoppedAt];
    };
    expect(await page({ q: "P1@" }, null)).toEqual([["p1"], "con_many000001"]);
    expect(await page({ q: "p0@" }, null)).toEqual([[], "con_many000001"]);
    expect(await page({ q: "p0@" }, "con_many000001")).toEqual([["p0"], null]);
    expect(await page({ q: "p77777@" }, "con_many077778")).toEqual([["p77777"], null]);
    expect(await page({ subscribed: false }, null)).toEqual([["p50001", "p1"], "con_many000001"]);
    // The last row of a step is the first of the next one.
    for (const at of [MAX_SCANNED + 1 - SCAN_STEP, MAX_SCANNED - SCAN_STEP])
      expect((await page({ q: `p${at}@` }, null))[0]).toEqual([`p${at}`]);
    expect(await page({}, "con_many000002")).toEqual([["p1", "p0"], null]);
  },
);

describe("a text search finds a part", () => {
  const rows: [string, string, boolean][] = [
    ["Abc", "bC", true],
    ["Abc", "x", false],
    ["Émile", "émile", true],
    ["émile", "ÉM", true],
    ["100%", "0%", true],
    ["100x", "0%", false],
    ["a_b", "a_b", true],
    ["axb", "a_b", false],
    ["a\\b", "\\", true],
    ["ab", "\\", false],
    ["a'b", "'", true],
    ["Привет Мир", "привет мир", true],
    ["Привет Мир", "ПРИВЕТ", true],
    ["Élise à Paris", "ÉLISE À", true],
    ["Élise à Paris", "elise", false],
    ["Größe 50%_*", "größe 50%_*", true],
    ["Größe 5", "größe ?", false],
    ["Größe [x]", "GRÖßE [X]", true],
    ["Größe x", "größe [x]", false],
    ["Größe^-]", "größe^-]", true],
    ["ΟΔΟΣ", "οδός", false],
    ["ΟΔΟΣ", "οδοσ", true],
    ["οδός", "ΔΌΣ", true],
    ["İstanbul", "İstanbul", true],
    ["İstanbul", "i̇stanbul", true],
    ["i̇stanbul", "İSTANBUL", true],
    ["İstanbul", "istanbul", true],
    ["İstanbul", "ISTANBUL", true],
    ["istanbul", "İstanbul", true],
    ["ISPARTA", "ısparta", true],
    ["ısparta", "ISPARTA", true],
    ["Iğdır", "ığdır", true],
    ["Iğdır", "IĞDIR", true],
    ["Straße 5", "strasse 5", true],
    ["STRASSE 5", "straße 5", true],
    ["Straße 5", "STRAẞE 5", true],
    ["Strase 5", "straße 5", false],
    ["Soﬁa", "sofia", true],
    ["SOFIA", "soﬁa", true],
    ["\u212aelvin", "kelvin", true],
    ["5 \u00b5m", "5 \u03bcm", true],
    ["Jose\u0301", "JOSÉ", true],
    ["José", "jose\u0301", true],
    ["z\u0307aba", "ŻABA", true],
    ["zaba", "z\u0307aba", false],
    // Letters with further Unicode forms that keyboards do not produce.
    ["\u095b", "\u095b", true],
    ["\u037e", "\u037e", true],
    ["İ_%\\*?[", "i_%\\*?[", true],
    ["İx", "i_", false],
    ["İx", "i?", false],
    ["ΟΔΟΣ", "οδος", true],
    ["日本語", "本", true],
    ["😀 Ä", "😀 ä", true],
  ];
  test.each(rows)("%s contains %s: %p", async (text, part, expected) => {
    const { sql, args } = containsText(["other", "text"], part);
    const found = await api.db.first(`SELECT 1 FROM (SELECT ? AS text, NULL AS other) WHERE ${sql}`, [
      text,
      ...args,
    ]);
    expect(found !== null).toBe(expected);
  });
});
