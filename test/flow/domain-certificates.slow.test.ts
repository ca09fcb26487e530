import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from "bun:test";
import { X509Certificate } from "node:crypto";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/core/time/units.ts";
import { domainHosts, ORDER_WINDOW_MS } from "../../src/flows/certificates/domain-hosts.ts";
import { newId } from "../../src/core/ids.ts";
import { findCertificate, wantCertificate } from "../../src/store/domains/certificates.ts";
import {
  countDomainOrder,
  domainCertificatesVersion,
  domainsToCertify,
  moveDomainCertificates,
  wantDomainCertificate,
} from "../../src/store/domains/domain-certificates.ts";
import { insertDomain } from "../../src/store/domains/domains.ts";
import { claimDueCertificate } from "../../src/store/domains/due-certificates.ts";
import type { Db } from "../../src/store/engine/client.ts";
import { insertProject } from "../../src/store/projects/projects.ts";
import { type Installation, installation, isIssued, SERVICE_DOMAIN } from "../support/acme.ts";
import { type TestApi, testApi, testSender } from "../support/api.ts";
import { titled } from "../support/dns-tools.ts";
import { type CaRequest, type Pebble, PEBBLE_MISSING, problem, startPebble } from "../support/pebble.ts";
import { freePort } from "../support/redis.ts";

const LIMIT_MS = 60_000;
setDefaultTimeout(LIMIT_MS);
const DIRECTORY = "https://ca.test/dir";

/** Stores a domain whose delegation is seen. Returns its id. */
async function seenDomain(
  db: Db,
  of: { accountId: string; senderId: string },
  name: string,
  now: number,
): Promise<string> {
  const id = newId("dom", now);
  const verified = { dkim: true, spf: true, dmarc: true, mx: false };
  await db.write([
    insertDomain({
      id,
      ...of,
      name,
      status: "verified",
      verified,
      receiving: false,
      routeIds: [],
      delegated: true,
      wildcard: false,
      delegationToken: id,
      served: true,
      recommended: { returnPath: false, links: false },
      delegationFound: true,
      delegationSeenAt: now,
      verifiedAt: now,
      failingSince: null,
      dmarcAuto: false,
      dmarcPolicy: "none",
      dmarcMoves: [],
      checkedAt: now,
      nextCheckAt: null,
      createdAt: now,
    }),
  ]);
  return id;
}

describe("the certificates of domains", () => {
  let api: TestApi;
  beforeEach(async () => {
    api = await testApi();
  });
  afterEach(() => api.close());

  /** Adds domains of a project, and their certificates to get. */
  async function wanted(project: "a" | "b", ...names: string[]): Promise<string[]> {
    const { db, acme, clock } = api;
    const ids: string[] = [];
    for (const name of names) {
      const of = { accountId: acme.id, senderId: acme[project].id };
      const id = await seenDomain(db, of, name, clock.now());
      ids.push(id);
      const wish = { id, names: domainHosts(name), directory: DIRECTORY };
      await db.write([wantDomainCertificate(wish, clock.now())]);
    }
    return ids;
  }

  /** Claims the next certificate with a limit of six orders, and begins an order that fails. Returns its id. */
  async function ordered(): Promise<string | null> {
    const { db, clock } = api;
    const now = clock.now();
    const record = await claimDueCertificate(db, {
      ids: [SERVICE_DOMAIN],
      domains: { since: now - ORDER_WINDOW_MS, orders: 6 },
      now,
      leaseUntil: now + MINUTE_MS,
      farthest: now + DAY_MS,
    });
    if (record === null) return null;
    await db.write([
      ...countDomainOrder(record.id, now, now - ORDER_WINDOW_MS),
      { sql: "UPDATE certificates SET due_at = ? WHERE id = ?", args: [now + 10 * HOUR_MS, record.id] },
    ]);
    return record.id;
  }

  test("the certificates of domains are ordered after our own, in turn for each project, and no project takes more orders than it leaves", async () => {
    const { db, clock } = api;
    const many = await wanted("a", ...Array.from({ length: 8 }, (_, at) => `d${at}.a.example`));
    const [lone = ""] = await wanted("b", "lone.b.example");
    const wish = { id: SERVICE_DOMAIN, names: [SERVICE_DOMAIN], directory: DIRECTORY };
    await db.write([wantCertificate(wish, clock.now())]);
    expect(await ordered()).toBe(SERVICE_DOMAIN);
    const firsts = [await ordered(), await ordered()];
    expect(firsts).toContain(lone);
    const more = [await ordered(), await ordered(), await ordered()];
    expect(more.filter((id) => id !== null && many.includes(id))).toHaveLength(2);
    expect(more.at(-1)).toBeNull();
    // Another project still gets its turn.
    const [late = ""] = await wanted("b", "late.b.example");
    expect(await ordered()).toBe(late);
    expect(await ordered()).toBeNull();
    clock.advance(ORDER_WINDOW_MS);
    const next = await ordered();
    expect(many).toContain(next ?? "");
  });

  test("certificates of domains that have a pending order, or are only read, need no new order", async () => {
    const ids = await wanted("a", ...Array.from({ length: 6 }, (_, at) => `d${at}.a.example`));
    while ((await ordered()) !== null);
    const [open = "", planned = ""] = ids;
    await api.db.write([
      { sql: "UPDATE certificates SET order_url = 'u', order_at = 1, due_at = 1 WHERE id = ?", args: [open] },
      {
        sql: `UPDATE certificates SET chain = 'c', private_key = 'k', issued_at = 1, not_after = 2, due_at = 1
              WHERE id = ?`,
        args: [planned],
      },
    ]);
    expect([await ordered(), await ordered(), await ordered()]).toEqual([open, planned, null]);
  });

  test("the certificates of domains wait while the delegation is not seen, and none are added", async () => {
    const { db } = api;
    const [id = ""] = await wanted("a", "news.a.example");
    const { json } = await api.call("POST", "/v1/domains", {
      body: { domain: "new.a.example", delegated: true },
    });
    expect(json.delegation.status).toBe("pending");
    expect(await domainsToCertify(db, 10, 10)).toEqual([]);
    await db.write([{ sql: "UPDATE domains SET delegation_found = 0 WHERE id = ?", args: [id] }]);
    expect(await ordered()).toBeNull();
    await db.write([{ sql: "UPDATE domains SET served = 1, delegation_found = 1", args: [] }]);
    expect(await domainsToCertify(db, 10, 10)).toEqual([
      { id: json.id, name: "new.a.example", delegated: true },
    ]);
    expect(await domainsToCertify(db, 10, 1)).toEqual([]);
    expect(await ordered()).toBe(id);
  });

  test("the certificates of domains go with their domain, or when its zone is no longer ours", async () => {
    const { db, acme, zone } = api;
    const [gone = "", switched = ""] = await wanted("a", "gone.a.example", "switched.a.example");
    const version = await domainCertificatesVersion(db);
    await db.write([
      {
        sql: "UPDATE certificates SET chain = 'c', private_key = 'k', issued_at = 1, not_after = 2 WHERE id = ?",
        args: [switched],
      },
    ]);
    expect(await domainCertificatesVersion(db)).not.toBe(version);
    expect((await api.call("DELETE", `/v1/domains/${gone}`)).status).toBe(204);
    expect(await findCertificate(db, gone)).toBeNull();
    const { json } = await api.call("GET", `/v1/domains/${switched}`);
    for (const { type, name, value } of json.records) zone.set(`${type} ${name}`, [value]);
    const back = await api.call("PATCH", `/v1/domains/${switched}`, { body: { delegated: false } });
    expect([back.status, back.json.delegation]).toEqual([200, undefined]);
    expect(await findCertificate(db, switched)).toBeNull();
    expect(await domainCertificatesVersion(db)).toBe("0 0");
    // A chore that read the domain before changes nothing.
    const wish = { id: switched, names: domainHosts("switched.a.example"), directory: DIRECTORY };
    await db.write([wantDomainCertificate(wish, 1), wantDomainCertificate({ ...wish, id: gone }, 1)]);
    expect(await findCertificate(db, switched)).toBeNull();
    expect(acme.a.id).not.toBe("");
  });

  test("the certificates of domains come from another CA from the next order on if the directory changes", async () => {
    const { db } = api;
    const [id = ""] = await wanted("a", "news.a.example");
    while ((await ordered()) !== null);
    await db.write([moveDomainCertificates("https://other.test/dir", 5)]);
    expect(await findCertificate(db, id)).toMatchObject({ directory: "https://other.test/dir", dueAt: 5 });
  });
});

describe.skipIf(PEBBLE_MISSING !== null)(titled("an order for a domain", PEBBLE_MISSING), () => {
  const dnsPort = freePort();
  let pebble: Pebble;
  let one: Installation;

  beforeAll(async () => {
    pebble = await startPebble({ dnsPort });
  }, LIMIT_MS);
  afterAll(() => pebble?.stop());
  beforeEach(async () => {
    pebble.requests.length = 0;
    one = await installation(dnsPort, undefined, {
      ACME_EMAIL: "o@example.com",
      TLS_PORT: "443",
      PUBLIC_IPS: "127.0.0.1",
      DELIVERY: "mx",
    });
    pebble.clock(() => one.clock.now());
    await one.keyed(pebble);
  });
  afterEach(async () => {
    pebble.fault(null);
    await one.stop();
  });

  async function domains(...names: string[]): Promise<string[]> {
    const { db, clock } = one;
    const accountId = newId("acc", clock.now());
    const sender = testSender(accountId, "default", clock.now());
    await db.write([
      {
        sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES (?, 'acme', 'o@acme.example', 1)",
        args: [accountId],
      },
      insertProject(sender),
    ]);
    const ids: string[] = [];
    for (const name of names)
      ids.push(await seenDomain(db, { accountId, senderId: sender.id }, name, clock.now()));
    return ids;
  }

  const namesIn = ({ body }: CaRequest): string[] => {
    const { payload } = JSON.parse(body);
    const { identifiers } = JSON.parse(Buffer.from(payload, "base64url").toString());
    return identifiers.map(({ value }: { value: string }) => value);
  };

  test("a domain's certificate that fails waits an hour; others are issued in that time, with keys that are fast to read", async () => {
    const [bad = "", good = ""] = await domains("bad.customer.test", "good.customer.test");
    pebble.fault((request) =>
      request.path === "/order-plz" && namesIn(request).includes("links.bad.customer.test")
        ? problem(400, "rejectedIdentifier", "not this one")
        : null,
    );
    const turn = one.renewal(pebble);
    await turn();
    const { issued } = await one.until(turn, isIssued, good);
    const leaf = new X509Certificate(issued?.chain ?? "");
    expect(leaf.publicKey.asymmetricKeyType).toBe("ec");
    for (const host of domainHosts("good.customer.test")) expect(leaf.checkHost(host)).toBe(host);
    const failed = await one.record(bad);
    expect(failed).toMatchObject({ failures: 1, lastError: { text: "rejectedIdentifier: not this one" } });
    expect(failed.dueAt - one.clock.now()).toBeGreaterThan(50 * MINUTE_MS);
    pebble.fault(null);
    one.clock.shift(failed.dueAt - one.clock.now());
    expect(await one.until(turn, isIssued, bad)).toMatchObject({ failures: 0, lastError: null });
    expect(new X509Certificate((await one.record()).issued?.chain ?? "").publicKey.asymmetricKeyType).toBe(
      "rsa",
    );
  });

  test("is made once by two processes, and given up without a trace if the domain is deleted during the order", async () => {
    const [kept = "", gone = ""] = await domains("kept.customer.test", "gone.customer.test");
    const turns = [one.renewal(pebble), one.renewal(pebble)];
    const both = async () => void (await Promise.all(turns.map((turn) => turn())));
    await both();
    await one.until(both, ({ order }) => order !== null, gone);
    await one.db.write([{ sql: "DELETE FROM domains WHERE id = ?", args: [gone] }]);
    await one.until(both, isIssued, kept);
    const orders = pebble.requests.filter(({ path }) => path === "/order-plz").map(namesIn);
    expect(orders.filter((names) => names.includes("links.kept.customer.test"))).toHaveLength(1);
    expect(await findCertificate(one.db, gone)).toBeNull();
    expect(await one.db.all("SELECT * FROM acme_challenges")).toEqual([]);
  });
});
