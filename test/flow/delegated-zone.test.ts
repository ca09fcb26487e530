import { afterEach, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { loadConfig } from "../../src/config.ts";
import { delegatedZones, MAX_DELEGATED_LABELS, zoneNames } from "../../src/flows/zone/delegated-zone.ts";
import { openZone } from "../../src/flows/zone/service-zone.ts";
import type { ZoneSettings } from "../../src/flows/zone/zone-settings.ts";
import { ensureInstallationKey } from "../../src/flows/records/keys.ts";
import { createResponder } from "../../src/net/zone/responder.ts";
import { zoneLine } from "../../src/net/zone/zone-file.ts";
import { addOwnRecord } from "../../src/flows/zone/add-record.ts";
import type { OwnRecordType } from "../../src/store/domains/domain-records.ts";
import { run, titled, toolMissing } from "../support/dns-tools.ts";
import { newFolder } from "../support/folder.ts";
import { SERVICE_DOMAIN, type TestApi, testApi } from "../support/api.ts";
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
});
afterEach(() => api.close());

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
        ...{ senderId: api.acme.a.id, domainId: id, type, name, value, now: api.clock.now() },
        ...{ ttl: undefined, priority: undefined, also: () => [] },
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

test("a delegation that was never seen gives way to the verified domain of another project", async () => {
  const { acme, other, zone, db } = api;
  const owner = other.a.key;
  const { json: body } = await api.call("POST", "/v1/domains", { key: owner, body: { domain: DOMAIN } });
  const path = `/v1/domains/${body.id}`;
  const claim = () => api.call("PATCH", path, { key: owner, body: { delegated: true } });
  expect((await claim()).status).toBe(409);
  for (const { type, name, value } of body.records) zone.set(`${type} ${name}`, [value]);
  expect((await api.call("POST", `${path}/verify`, { key: owner })).json.status).toBe("verified");
  expect((await claim()).json).toMatchObject({ status: "verified", delegation: { status: "pending" } });
  expect(await db.first("SELECT delegated FROM domains WHERE sender_id = ?", [acme.a.id])).toEqual({
    delegated: 0,
  });
});
