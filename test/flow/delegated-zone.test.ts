import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { loadConfig } from "../../src/config.ts";
import { CHALLENGE_SETTLE_MS } from "../../src/flows/certificates/order.ts";
import { delegatedZones, MAX_DELEGATED_LABELS, zoneNames } from "../../src/flows/zone/delegated-zone.ts";
import { openZone } from "../../src/flows/zone/service-zone.ts";
import type { ZoneSettings } from "../../src/flows/zone/zone-settings.ts";
import { ensureInstallationKey } from "../../src/flows/records/keys.ts";
import { recheckDue } from "../../src/flows/domains/recheck.ts";
import { createResponder } from "../../src/net/zone/responder.ts";
import { zoneLine } from "../../src/net/zone/zone-file.ts";
import { addOwnRecord } from "../../src/flows/zone/add-record.ts";
import { findCertificate } from "../../src/store/domains/certificates.ts";
import { UNPROVEN_FOR_MS } from "../../src/store/domains/delegations.ts";
import { wantDomainCertificate } from "../../src/store/domains/domain-certificates.ts";
import { findServedDomain } from "../../src/store/domains/domains.ts";
import type { OwnRecordType } from "../../src/store/domains/domain-records.ts";
import { run, titled, toolMissing } from "../support/dns-tools.ts";
import { newFolder } from "../support/folder.ts";
import { SERVICE_DOMAIN, type TestApi, testApi } from "../support/api.ts";
import { around } from "../support/around.ts";
import { watched } from "../support/watched-db.ts";
import { queryOctets, quietLog } from "../support/zone.ts";

const DOMAIN = "news.example.com";
const SETTINGS: ZoneSettings = { ...loadConfig({}), serviceDomain: SERVICE_DOMAIN, publicIps: ["192.0.2.1"] };
const CLIENT = "192.0.2.9";
const RCODE_MASK = 0x0f;

let api: TestApi;
let id: string;
beforeEach(async () => {
  api = await testApi();
  await ensureInstallationKey({ ...api.domains, db: api.db }, api.clock.now());
  const made = await api.call("POST", "/v1/domains", { body: { domain: DOMAIN, delegated: true } });
  id = made.json.id;
  await prove(made.json);
});
afterEach(() => api.close());

interface Registered {
  id: string;
  delegation: { records: { name: string; value: string }[] };
}

/** Lets the zone above delegate a name to a registration, and checks it. Returns the domain as shown after that. */
async function prove({ id: of, delegation }: Registered, key = api.acme.a.key) {
  for (const { name, value } of delegation.records) api.zone.set(`NS ${name}`, [value]);
  return (await api.call("POST", `/v1/domains/${of}/verify`, { key })).json;
}

async function server() {
  const db = watched(api.db);
  const deps = { db, clock: api.clock };
  const zone = await openZone({ db: api.db, clock: api.clock }, SETTINGS);
  const find = delegatedZones(deps, SETTINGS);
  const responder = createResponder({ clock: api.clock, log: quietLog(), zone, findZone: find });
  const rcode = async (name: string, type = "TXT") =>
    ((await responder(queryOctets(name, type), "udp", CLIENT))?.octets[3] ?? -1) & RCODE_MASK;
  return { db, find, rcode };
}

test("any number of names in a delegated zone cost one look for it a second", async () => {
  const { db, rcode } = await server();
  db.asked = 0;
  for (let at = 0; at < 50; at++) expect(await rcode(`r${at}.${DOMAIN}`)).toBe(3);
  expect(db.asked).toBe(1);
  api.clock.advance(1000);
  expect(await rcode(DOMAIN)).toBe(0);
  expect(db.asked).toBe(2);
});

test("a name of no zone is refused after one look, and names that cannot be in one after none", async () => {
  const { db, rcode } = await server();
  db.asked = 0;
  expect(await rcode("www.example.org")).toBe(5);
  expect(db.asked).toBe(1);
  expect(await rcode("com")).toBe(5);
  expect(await rcode(DOMAIN, "AXFR")).toBe(5);
  expect(await rcode(SERVICE_DOMAIN)).toBe(0);
  expect(await rcode(`none.${SERVICE_DOMAIN}`)).toBe(3);
  expect(db.asked).toBe(1);
});

test("a name is SERVFAIL while the database fails, in a zone and elsewhere", async () => {
  const { db, rcode } = await server();
  db.state = "failing";
  expect(await rcode(DOMAIN)).toBe(2);
  expect(await rcode("www.example.org")).toBe(2);
  db.state = "fine";
  expect(await rcode(DOMAIN)).toBe(0);
});

test("if the database hangs, a limited number of queries wait, and one more fails at once", async () => {
  const { db, find, rcode } = await server();
  db.state = "hanging";
  db.asked = 0;
  const waiting = Array.from({ length: 32 + 1000 }, (_, at) => find(`a.n${at}.test`).catch(String));
  expect(await rcode("one.more.test")).toBe(2);
  expect(db.asked).toBe(32);
  db.state = "fine";
  api.clock.advance(3000);
  await Promise.all(waiting);
  expect(await rcode(DOMAIN)).toBe(0);
});

test("a zone whose read was slow is not kept longer than another, so that the CA finds a new record", async () => {
  let slow: Promise<void> | null = null;
  const db = around(api.db);
  const find = delegatedZones(
    {
      clock: api.clock,
      db: {
        ...db,
        async all(...args: Parameters<typeof db.all>) {
          const rows = await db.all(...args);
          await slow;
          return rows;
        },
      } as typeof db,
    },
    SETTINGS,
  );
  const { promise, resolve } = Promise.withResolvers<void>();
  slow = promise;
  const before = find(DOMAIN);
  await new Promise((done) => setTimeout(done, 50));
  slow = null;
  const name = `new.${DOMAIN}`;
  await addOwnRecord(api.db, {
    senderId: api.acme.a.id,
    domainId: id,
    type: "TXT",
    name,
    value: "new",
    now: api.clock.now(),
    ttl: undefined,
    priority: undefined,
    also: () => [],
  });
  api.clock.advance(CHALLENGE_SETTLE_MS - 1);
  resolve();
  await before;
  api.clock.advance(1);
  expect((await find(DOMAIN))?.nodes.has(name)).toBe(true);
});

test("a deleted domain is refused after a second", async () => {
  const { rcode } = await server();
  expect(await rcode(DOMAIN)).toBe(0);
  expect((await api.call("DELETE", `/v1/domains/${id}`)).status).toBe(204);
  api.clock.advance(1000);
  expect(await rcode(DOMAIN)).toBe(5);
});

test("a long name is looked up by its last ten labels", () => {
  const name = Array.from({ length: 120 }, (_, at) => `l${at}`).join(".");
  const names = zoneNames(name);
  expect(names.map((zone) => zone.split(".").length)).toEqual(
    Array.from({ length: MAX_DELEGATED_LABELS - 1 }, (_, at) => MAX_DELEGATED_LABELS - at),
  );
  expect(zoneNames("com")).toEqual([]);
  expect(zoneNames("")).toEqual([]);
});

const CHECKZONE = toolMissing("named-checkzone");
test.skipIf(CHECKZONE !== null)(
  titled("named-checkzone accepts a zone with every type of record", CHECKZONE),
  async () => {
    const wanted: [OwnRecordType, string, string][] = [
      ["A", `*.www.${DOMAIN}`, "192.0.2.1"],
      ["AAAA", `www.${DOMAIN}`, "2001:db8::1"],
      ["CNAME", `shop.${DOMAIN}`, "shops.example.net"],
      ["TXT", `text.${DOMAIN}`, `;"\\ ${"ü".repeat(300)}`],
      ["MX", `in.${DOMAIN}`, "mx.example.net"],
      ["CAA", DOMAIN, '128 issuewild ";"'],
    ];
    for (const [type, name, value] of wanted)
      await addOwnRecord(api.db, {
        senderId: api.acme.a.id,
        domainId: id,
        type,
        name,
        value,
        now: api.clock.now(),
        ttl: undefined,
        priority: undefined,
        also: () => [],
      });
    const { find } = await server();
    const zone = (await find(DOMAIN))?.zone;
    if (zone === undefined) throw new Error("no zone");
    const file = join(newFolder("zone"), "zone");
    await Bun.write(file, `${[await zone.soa(), ...zone.records].map(zoneLine).join("\n")}\n`);
    const { output } = await run(["named-checkzone", "-i", "none", DOMAIN, file]);
    expect(output.trim().split("\n")).toEqual([expect.stringContaining("loaded serial"), "OK"]);
    for (const [, name] of wanted) expect(zone.records.map((record) => record.name)).toContain(name);
  },
);

test("an alias has one line in a zone file", () => {
  expect(zoneLine({ name: "a.test", ttl: 60, type: "CNAME", data: "b.test" })).toBe(
    "a.test. 60 IN CNAME b.test.",
  );
});

describe("a name that several projects ask for", () => {
  const NAME = "claimed.example.com";
  const keys = () => ({ a: api.acme.a.key, b: api.acme.b.key, stranger: api.other.a.key });
  type Who = keyof ReturnType<typeof keys>;

  const post = (who: Who, domain = NAME, delegated = true) =>
    api.call("POST", "/v1/domains", { key: keys()[who], body: { domain, delegated } });
  const verify = async (who: Who, { id: of }: Registered) =>
    (await api.call("POST", `/v1/domains/${of}/verify`, { key: keys()[who] })).json;
  const switched = (who: Who, of: string, delegated: boolean) =>
    api.call("PATCH", `/v1/domains/${of}`, { key: keys()[who], body: { delegated } });
  const served = async (name = NAME) => (await findServedDomain(api.db, [name]))?.id ?? null;
  /** Publishes a domain's own records. */
  const publish = (records: { type: string; name: string; value: string }[]) => {
    for (const { type, name, value } of records) api.zone.set(`${type} ${name}`, [value]);
  };

  test("a name that several projects ask for is refused until the NS record of one registration is seen, and then served for that one alone", async () => {
    const { rcode } = await server();
    const [first, second] = [(await post("a")).json, (await post("stranger")).json];
    const hosts = [first, second].map(({ delegation }: Registered) => delegation.records[0]?.value);
    expect(new Set(hosts).size).toBe(2);
    expect([await rcode(NAME), (await verify("a", first)).status]).toEqual([5, "pending"]);
    expect(await prove(second, keys().stranger)).toMatchObject({
      status: "verified",
      delegation: { status: "active" },
    });
    api.clock.advance(1000);
    expect([await served(), await rcode(NAME)]).toEqual([second.id, 0]);
    expect(await verify("a", first)).toMatchObject({ status: "pending", delegation: { status: "pending" } });
    expect(await served()).toBe(second.id);
  });

  test("a name that several projects ask for is not proven by the name server without a token, nor by the token of a registration that was deleted", async () => {
    const { rcode } = await server();
    const gone = (await post("a")).json;
    await prove(gone);
    expect((await api.call("DELETE", `/v1/domains/${gone.id}`)).status).toBe(204);
    const { json: heir } = await post("stranger");
    expect((await verify("stranger", heir)).status).toBe("pending");
    api.zone.set(`NS ${NAME}`, [`ns.${SERVICE_DOMAIN}`]);
    expect(await verify("stranger", heir)).toMatchObject({
      status: "pending",
      delegation: { status: "pending" },
      records: [{ status: "missing" }, {}, {}],
    });
    expect([await served(), await rcode(NAME)]).toEqual([null, 5]);
  });

  test("a name that several projects ask for stays with the project that it was delegated to by the name without a token", async () => {
    const { json: old } = await post("a");
    await prove(old);
    api.zone.set(`NS ${NAME}`, [`ns.${SERVICE_DOMAIN}`]);
    expect(await verify("a", old)).toMatchObject({ status: "verified", delegation: { status: "active" } });
  });

  test("a name that several projects ask for goes to the next owner once the NS record of the former one is gone, with its certificate", async () => {
    const { json: former } = await post("a");
    await prove(former);
    const wish = { id: former.id, names: [NAME], directory: "https://ca.test" };
    await api.db.write([wantDomainCertificate(wish, 1)]);
    const { json: next } = await post("stranger");
    expect((await prove(next, keys().stranger)).status).toBe("pending");
    expect(await served()).toBe(former.id);
    // The claim makes the check of the former owner due.
    await recheckDue(api.domains, 10);
    expect((await verify("stranger", next)).status).toBe("verified");
    expect([await served(), await findCertificate(api.db, former.id)]).toEqual([next.id, null]);
    // The former owner keeps its records for as long as any domain that breaks, but not the zone.
    expect((await verify("a", former)).delegation.status).toBe("pending");
    expect(await served()).toBe(next.id);
  });

  test("a name that several projects ask for is served for one of two registrations whose checks run at the same time", async () => {
    const both = [(await post("a")).json, (await post("stranger")).json] as [Registered, Registered];
    const hosts = both.flatMap(({ delegation }) => delegation.records.map(({ value }) => value));
    api.zone.set(`NS ${NAME}`, hosts);
    const after = await Promise.all([verify("a", both[0]), verify("stranger", both[1])]);
    const statuses = after.map(({ status }) => status);
    expect(statuses.sort()).toEqual(["pending", "verified"]);
    expect(await served()).toBe(after.find(({ status }) => status === "verified")?.id);
  });

  test("a name that several projects ask for is served at once if its records are verified, whatever its NS record is, and never refused", async () => {
    const { rcode } = await server();
    const { json: own } = await post("stranger", NAME, false);
    publish(own.records);
    expect((await verify("stranger", own)).status).toBe("verified");
    api.zone.set(`NS ${NAME}`, "failure");
    for (const delegated of [true, true]) {
      const { status, json } = await switched("stranger", own.id, delegated);
      expect([status, json.status, json.delegation.status]).toEqual([200, "verified", "pending"]);
    }
    expect(await rcode(NAME)).toBe(0);
  });

  test("a name that several projects ask for is served once its records are verified, before the NS record is published", async () => {
    const { json: own } = await post("a");
    publish(own.records);
    expect((await verify("a", own)).delegation.status).toBe("pending");
    expect(await served()).toBe(own.id);
  });

  test("a name that several projects ask for is not taken from its owner by a former one whose records count for 72 hours more", async () => {
    const { json: former } = await post("stranger", NAME, false);
    publish(former.records);
    await verify("stranger", former);
    const { json: owner } = await post("a", NAME, false);
    publish(owner.records);
    await verify("a", owner);
    await switched("a", owner.id, true);
    expect((await verify("stranger", former)).status).toBe("verified");
    expect((await switched("stranger", former.id, true)).status).toBe(409);
    expect(await served()).toBe(owner.id);
  });

  test("above or below a delegated one is refused while the DNS delegates that one", async () => {
    const { json: below } = await post("a", `deep.${NAME}`);
    expect((await post("stranger")).status).toBe(201);
    await prove(below);
    expect((await post("b", `x.deep.${NAME}`)).json.error.code).toBe("duplicate");
    api.zone.delete(`NS deep.${NAME}`);
    await verify("a", below);
    const { json: above } = await post("b");
    expect((await prove(above, keys().b)).status).toBe("verified");
    expect([await served(), await served(`deep.${NAME}`)]).toEqual([above.id, null]);
  });

  test("a name that was never verified gives way to another project of the account after 7 days", async () => {
    const { json: squatted } = await post("a", NAME, false);
    api.clock.advance(UNPROVEN_FOR_MS - 1);
    expect((await post("b")).json.error.code).toBe("duplicate");
    api.clock.advance(1);
    expect((await post("a")).json.error.code).toBe("duplicate");
    expect((await post("b")).status).toBe(201);
    expect((await api.call("GET", `/v1/domains/${squatted.id}`)).status).toBe(404);
    api.clock.advance(UNPROVEN_FOR_MS);
    const { json: proven } = await post("a", "proven.example.com", false);
    publish(proven.records);
    await verify("a", proven);
    api.clock.advance(UNPROVEN_FOR_MS);
    expect((await post("b", "proven.example.com")).json.error.code).toBe("duplicate");
  });
});
