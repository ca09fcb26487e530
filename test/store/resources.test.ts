import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { isBroken } from "../../src/store/engine/guards.ts";
import {
  allOwnRecords,
  deleteOwnRecord,
  insertOwnRecord,
  listOwnRecords,
} from "../../src/store/domains/domain-records.ts";
import {
  activateDkimKeys,
  type DkimKeyRecord,
  dkimKeysOf,
  findPublishedKey,
  insertDkimKey,
  insertInstallationKey,
  listDkimKeys,
  publicInstallationKey,
  putPendingKeys,
} from "../../src/store/domains/dkim-keys.ts";
import { setDelegated } from "../../src/store/domains/delegations.ts";
import {
  claimDueDomains,
  deleteDomain,
  type Domain,
  findDomain,
  getDomain,
  insertDomain,
  listDomains,
  setReceiving,
  storeCheck,
} from "../../src/store/domains/domains.ts";
import { findAnswer, IDEMPOTENCY_WINDOW_MS, insertAnswer } from "../../src/store/projects/idempotency.ts";
import { deleteInbox } from "../../src/store/threads/inbox-removal.ts";
import {
  countReceived,
  getInbox,
  insertInbox,
  listInboxes,
  updateInbox,
} from "../../src/store/threads/inboxes.ts";
import { touchKey } from "../../src/store/projects/keys.ts";
import { findProject, getProject, listProjects, updateProject } from "../../src/store/projects/projects.ts";
import { isUnavailable } from "../../src/store/sql/errors.ts";
import {
  deleteWebhook,
  getWebhook,
  insertWebhook,
  listWebhooks,
  rotateSecret,
  updateWebhook,
} from "../../src/store/webhooks/webhooks.ts";
import { type TestApi, testApi } from "../support/api.ts";

const NOW = 1_750_000_000_000;
let api: TestApi;
let mine: string;
let theirs: string;

function domainOf(id: string, name: string, nextCheckAt: number | null = null): Domain {
  return {
    id,
    accountId: api.acme.id,
    senderId: mine,
    name,
    status: "pending",
    nextCheckAt,
    createdAt: NOW,
    verified: { dkim: false, spf: false, dmarc: false, mx: false },
    recommended: { returnPath: false, links: false },
    delegated: false,
    wildcard: false,
    delegationToken: id,
    served: false,
    delegationFound: false,
    delegationSeenAt: null,
    receiving: false,
    routeIds: [],
    verifiedAt: null,
    failingSince: null,
    checkedAt: null,
    dmarcAuto: false,
    dmarcPolicy: "none",
    dmarcMoves: [],
  };
}

function keyOf(token: string, changes: Partial<DkimKeyRecord> = {}): DkimKeyRecord {
  return {
    token,
    domainId: "dom_1",
    selector: "pr1",
    algorithm: "rsa",
    publicKey: "AA==",
    sealedPrivateKey: "x",
    status: "active",
    retireAt: null,
    createdAt: NOW,
    ...changes,
  };
}

beforeAll(async () => {
  api = await testApi();
  mine = api.acme.a.id;
  theirs = api.acme.b.id;
  await api.db.write([
    insertDomain(domainOf("dom_1", "one.example")),
    insertDkimKey(keyOf("token-1")),
    insertInbox({
      id: "inb_1",
      senderId: mine,
      domainId: "dom_1",
      address: "a@one.example",
      displayName: "",
      signature: "",
      type: "agent",
      accept: "anyone",
      createdAt: NOW,
    }),
    insertWebhook(
      {
        id: "whk_1",
        senderId: mine,
        url: "https://x.example/",
        enabled: true,
        dialect: "postrider" as const,
        eventTypes: ["*"],
        content: true,
        disabledReason: null,
        failingSince: null,
        createdAt: NOW,
        updatedAt: NOW,
      },
      "sealed",
    ),
    { sql: "UPDATE domains SET delegated = 1 WHERE id = 'dom_1'", args: [] },
    ...insertOwnRecord(
      {
        id: "rec_1",
        senderId: mine,
        domainId: "dom_1",
        type: "A",
        name: "a.one.example",
        value: "192.0.2.1",
        ttl: 60,
        priority: null,
        createdAt: NOW,
      },
      { isTopMx: false, branch: null },
    ),
  ]);
});
afterAll(() => api.close());

/** The rows of all tables of projects. */
async function everything(): Promise<string> {
  const tables = ["domains", "domain_records", "dkim_keys", "inboxes", "webhooks", "senders"];
  return JSON.stringify(await Promise.all(tables.map((table) => api.db.all(`SELECT * FROM ${table}`))));
}

describe("a row of another project is treated as absent", () => {
  const check = {
    status: "verified" as const,
    verifiedAt: 1,
    failingSince: 1,
    checkedAt: 1,
    nextCheckAt: 1,
    delegationFound: false,
    delegationSeenAt: null,
    served: false,
  };
  const recommended = { returnPath: false, links: false };
  const flags = { dkim: true, spf: true, dmarc: true, mx: true };
  const dom1 = { id: "dom_1", checkedAt: null, receiving: false, delegated: true, served: false };
  const rows: [string, (a: TestApi) => Promise<unknown>, unknown][] = [
    ["getDomain", ({ db }) => getDomain(db, theirs, "dom_1"), null],
    ["findDomain", ({ db }) => findDomain(db, theirs, "one.example"), null],
    ["listDomains", ({ db }) => listDomains(db, theirs, null, 10), []],
    ["deleteDomain", ({ db }) => deleteDomain(db, theirs, "dom_1"), false],
    [
      "setDelegated",
      async ({ db }) => {
        const domain = await getDomain(db, mine, "dom_1");
        return domain !== null && setDelegated(db, { ...domain, senderId: theirs }, true, 5);
      },
      false,
    ],
    ["listOwnRecords", ({ db }) => listOwnRecords(db, theirs, "dom_1", null, 10), []],
    ["allOwnRecords", ({ db }) => allOwnRecords(db, theirs, "dom_1"), []],
    ["deleteOwnRecord", ({ db }) => deleteOwnRecord(db, theirs, "dom_1", "rec_1"), false],
    ["setReceiving", ({ db }) => setReceiving(db, theirs, "dom_1", false, 5), false],
    [
      "storeCheck",
      async ({ db }) =>
        (
          await db.write([
            storeCheck({ ...dom1, senderId: theirs }, { ...check, recommended, verified: flags }, null),
          ])
        )[0]?.changes,
      0,
    ],
    ["listDkimKeys", ({ db }) => listDkimKeys(db, theirs, "dom_1"), []],
    ["dkimKeysOf", async ({ db }) => [...(await dkimKeysOf(db, theirs, ["dom_1"])).keys()], []],
    ["getInbox", ({ db }) => getInbox(db, theirs, "inb_1"), null],
    ["listInboxes", ({ db }) => listInboxes(db, theirs, null), []],
    ["updateInbox", ({ db }) => updateInbox(db, theirs, "inb_1", { displayName: "x" }), null],
    ["deleteInbox", ({ db }) => deleteInbox(db, theirs, "inb_1"), false],
    ["countReceived", async ({ db }) => (await db.write([countReceived(theirs, "inb_1")]))[0]?.changes, 0],
    ["getWebhook", ({ db }) => getWebhook(db, theirs, "whk_1"), null],
    ["listWebhooks", ({ db }) => listWebhooks(db, theirs, null, 10), []],
    ["updateWebhook", ({ db }) => updateWebhook(db, theirs, "whk_1", { enabled: false }, true, 5), null],
    [
      "rotateSecret",
      async ({ db }) => (await db.write([rotateSecret(theirs, "whk_1", "new", 5, 5)]))[0]?.changes,
      0,
    ],
    ["deleteWebhook", ({ db }) => deleteWebhook(db, theirs, "whk_1", NOW), false],
    ["getSender of another account", ({ db, other }) => getProject(db, other.id, mine), null],
    ["findSender of another account", ({ db, other }) => findProject(db, other.id, "acme-a"), null],
    [
      "updateSender of another account",
      ({ db, other }) => updateProject(db, other.id, mine, { name: "x" }),
      null,
    ],
  ];
  test.each(rows)("%s", async (_name, run, expected) => {
    const before = await everything();
    expect(await run(api)).toEqual(expected);
    expect(await everything()).toBe(before);
  });

  test("a row of another project is treated as absent lists of projects show only the account's own", async () => {
    const ids = (await listProjects(api.db, api.acme.id, null, 10)).map(({ id }) => id);
    expect(ids).toEqual([theirs, mine]);
    expect(await listProjects(api.db, api.acme.id, theirs, 10)).toHaveLength(1);
  });
});

describe("a stored idempotent answer", () => {
  const at = { scope: "snd_1", endpoint: "POST /v1/x", key: "k" };
  const answer = { bodyHash: "h", status: 201, body: "{}", createdAt: NOW };
  const mark = { sql: "UPDATE senders SET name = 'changed' WHERE id = ?", args: [] as string[] };

  test("exists once: a second one within 24 hours rolls back the write it comes with", async () => {
    const { db } = api;
    await db.write([insertAnswer(at, answer)]);
    const late = { ...answer, body: "second", createdAt: NOW + IDEMPOTENCY_WINDOW_MS - 1 };
    const write = db.write([{ ...mark, args: [mine] }, insertAnswer(at, late)]);
    const error = await write.catch((thrown: unknown) => thrown);
    expect(isBroken(error, "key_answered")).toBe(true);
    expect((await getProject(db, api.acme.id, mine))?.name).toBe("acme-a");
    expect((await findAnswer(db, at))?.body).toBe("{}");
  });

  test("a stored idempotent answer of 24 hours ago is replaced by a new one", async () => {
    const { db } = api;
    await db.write([insertAnswer(at, { ...answer, body: "new", createdAt: NOW + IDEMPOTENCY_WINDOW_MS })]);
    expect((await findAnswer(db, at))?.body).toBe("new");
  });
});

describe("DKIM keys", () => {
  test("a second pending key rolls back the write it comes with", async () => {
    const { db } = api;
    const pending = (token: string) =>
      putPendingKeys([keyOf(token, { selector: "pr2", createdAt: NOW + 1 })], "dom_1", []);
    await db.write(pending("token-2"));
    const error = await db.write(pending("token-3")).catch((thrown: unknown) => thrown);
    expect(isBroken(error, "dkim_key_pending")).toBe(true);
    expect((await listDkimKeys(db, mine, "dom_1")).map(({ token }) => token)).toEqual(["token-1", "token-2"]);
  });

  test("the active one retires once, when the pending one takes over", async () => {
    const { db } = api;
    const states = async () => (await listDkimKeys(db, mine, "dom_1")).map(({ status }) => status);
    await db.write(activateDkimKeys("dom_1", NOW + 2, NOW + 10));
    expect(await states()).toEqual(["active", "pending"]);
    for (let twice = 0; twice < 2; twice++) await db.write(activateDkimKeys("dom_1", NOW + 1, NOW + 10));
    expect(await states()).toEqual(["retired", "active"]);
  });

  test("a retired one stays published until its time is over", async () => {
    const { db } = api;
    expect((await findPublishedKey(db, "token-1", NOW + 9))?.publicKey).toBe("AA==");
    expect(await findPublishedKey(db, "token-1", NOW + 10)).toBeNull();
    expect((await findPublishedKey(db, "token-2", NOW + 10))?.status).toBe("active");
    expect(await findPublishedKey(db, "none", NOW)).toBeNull();
  });

  test("the installation keeps the first one it makes", async () => {
    const { db } = api;
    for (const token of ["own-1", "own-2"]) await db.write([insertInstallationKey(keyOf(token))]);
    expect(await publicInstallationKey(db)).toMatchObject({ token: "own-1", domainId: null });
  });
});

test("a due domain is taken by one process alone, the longest due first, up to the requested number", async () => {
  const { db } = api;
  await db.write([1, 2, 3].map((at) => insertDomain(domainOf(`dom_due${at}`, `due${at}.example`, NOW + at))));
  const taken = await Promise.all([1, 2, 3].map(() => claimDueDomains(db, NOW + 2, NOW + 1000, 1)));
  expect(taken.map((domains) => domains.map(({ name }) => name))).toEqual([
    ["due1.example"],
    ["due2.example"],
    [],
  ]);
  expect(await claimDueDomains(db, NOW + 1000, NOW + 5000, 10)).toHaveLength(3);
});

test("the time of a key's last use never goes back", async () => {
  const { db } = api;
  const row = await db.first<{ id: string }>("SELECT id FROM api_keys LIMIT 1");
  const id = row?.id ?? "";
  await touchKey(db, id, NOW + 5);
  await touchKey(db, id, NOW);
  expect(await db.first("SELECT last_used_at AS at FROM api_keys WHERE id = ?", [id])).toMatchObject({
    at: NOW + 5,
  });
});

describe("an unreachable database", () => {
  const rows: [string, unknown, boolean][] = [
    ["locked", { code: "SQLITE_BUSY" }, true],
    ["full", { code: "SQLITE_FULL" }, true],
    ["unreadable", { code: "SQLITE_IOERR_READ" }, true],
    ["refusing", { code: "ECONNREFUSED" }, true],
    ["a gateway's error", { code: "SERVER_ERROR" }, true],
    ["wrong SQL is a bug", { code: "SQLITE_ERROR" }, false],
    ["a broken constraint is a bug", { code: "SQLITE_CONSTRAINT_UNIQUE" }, false],
    ["any other error", {}, false],
  ];
  test.each(rows)("%s", (_name, properties, expected) => {
    expect(isUnavailable(Object.assign(new Error("x"), properties))).toBe(expected);
  });
  test("a value that is not an error", () => {
    expect(isUnavailable({ code: "SQLITE_BUSY" })).toBe(false);
    expect(isUnavailable(undefined)).toBe(false);
  });
});
