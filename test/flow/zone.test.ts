import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { loadConfig } from "../../src/config.ts";
import { KEY_CACHE_SECONDS, KEY_TTL_SECONDS, openZone, zoneFile } from "../../src/flows/zone/service-zone.ts";
import type { ZoneSettings } from "../../src/flows/zone/zone-settings.ts";
import { ensureInstallationKey } from "../../src/flows/records/keys.ts";
import { registerDomain } from "../../src/flows/domains/register.ts";
import { rotateDkim } from "../../src/flows/domains/rotate.ts";
import { verifyDomain } from "../../src/flows/domains/verify.ts";
import type { Zone } from "../../src/net/zone/answer.ts";
import { insertDkimKey, type PublicDkimKey } from "../../src/store/domains/dkim-keys.ts";
import { SERVICE_DOMAIN, type TestApi, testApi } from "../support/api.ts";
import { reason } from "../support/reason.ts";
import { watched } from "../support/watched-db.ts";

const SETTINGS: ZoneSettings = {
  ...loadConfig({}),
  serviceDomain: SERVICE_DOMAIN,
  publicIps: ["192.0.2.1", "2001:db8::1"],
  publicUrl: "https://app.example.net",
};
const WEEK_MS = 7 * 24 * 3_600_000;

let api: TestApi;
beforeEach(async () => {
  api = await testApi();
});
afterEach(() => api.close());

/** Registers a domain with its records in place. Returns its id and keys. */
async function registered(name: string): Promise<{ id: string; key: PublicDkimKey }> {
  const { acme, clock, domains, zone } = api;
  const made: { id: string; key: PublicDkimKey }[] = [];
  await registerDomain(domains, {
    accountId: acme.id,
    senderId: acme.a.id,
    name,
    now: clock.now(),
    also(domain, [key]) {
      if (key !== undefined) made.push({ id: domain.id, key });
      return [];
    },
  });
  zone.set(`TXT ${name}`, [`v=spf1 include:spf.${SERVICE_DOMAIN} ~all`]);
  zone.set(`TXT _dmarc.${name}`, ["v=DMARC1; p=none"]);
  const [only] = made;
  if (only === undefined) throw new Error("not made");
  zone.set(`CNAME pr1._domainkey.${name}`, [`${only.key.token}.dkim.${SERVICE_DOMAIN}`]);
  return only;
}

/** The records of a key, by its token. */
const keyOf = async (zone: Zone, token: string) =>
  (await zone.dynamic.find(({ parent }) => parent.startsWith("dkim."))?.find(token)) ?? null;
const ttlOf = async (zone: Zone, token: string) => (await keyOf(zone, token))?.[0]?.ttl ?? null;

describe("a customer's key", () => {
  test("exists from the moment its domain is registered, and is gone once that is deleted", async () => {
    const zone = await openZone(api, SETTINGS);
    const { id, key } = await registered("a.example.com");
    expect(await keyOf(zone, key.token)).toEqual([
      {
        name: `${key.token}.dkim.${SERVICE_DOMAIN}`,
        ttl: KEY_TTL_SECONDS,
        type: "TXT",
        data: `v=DKIM1; k=rsa; p=${key.publicKey}`,
      },
    ]);
    await api.call("DELETE", `/v1/domains/${id}`);
    // Cached for a moment, no longer.
    expect(await keyOf(zone, key.token)).not.toBeNull();
    api.clock.advance(KEY_CACHE_SECONDS * 1000);
    expect(await keyOf(zone, key.token)).toBeNull();
  });

  test("a customer's key stays for seven days after its successor, in no cache for longer, and is replaced by a third", async () => {
    const { acme, clock, domains, zone: world } = api;
    const zone = await openZone(api, SETTINGS);
    const { id, key: first } = await registered("a.example.com");
    const rotate = async () => {
      const keys: PublicDkimKey[] = [];
      const also = (_domain: unknown, all: PublicDkimKey[]) => {
        keys.push(...all);
        return [];
      };
      await rotateDkim(domains, { senderId: acme.a.id, id, now: clock.now(), also });
      const fresh = keys.find(({ status }) => status === "pending");
      if (fresh === undefined) throw new Error("no new key");
      world.set(`CNAME ${fresh.selector}._domainkey.a.example.com`, [
        `${fresh.token}.dkim.${SERVICE_DOMAIN}`,
      ]);
      await verifyDomain(domains, acme.a.id, id);
      return fresh;
    };
    const second = await rotate();
    expect([await ttlOf(zone, first.token), await ttlOf(zone, second.token)]).toEqual([3600, 3600]);
    clock.advance(WEEK_MS - 10_000);
    expect([await ttlOf(zone, first.token), await ttlOf(zone, second.token)]).toEqual([10, 3600]);
    clock.advance(9_999);
    expect(await ttlOf(zone, first.token)).toBe(0);
    clock.advance(1);
    expect([await ttlOf(zone, first.token), await ttlOf(zone, second.token)]).toEqual([null, 3600]);
    const third = await rotate();
    expect(third.token).toBe(first.token);
    expect((await keyOf(zone, third.token))?.[0]).toMatchObject({ ttl: KEY_TTL_SECONDS });
  });

  test("a customer's key is read from the database once in thirty seconds; invented tokens of our form each time, others never", async () => {
    const db = watched(api.db);
    const zone = await openZone({ db, clock: api.clock }, SETTINGS);
    const { key } = await registered("a.example.com");
    db.asked = 0;
    for (let at = 0; at < 5; at++) await keyOf(zone, key.token);
    expect(db.asked).toBe(1);
    api.clock.advance(KEY_CACHE_SECONDS * 1000);
    await keyOf(zone, key.token);
    expect(db.asked).toBe(2);
    for (const token of ["0".repeat(26), "0".repeat(26)]) expect(await keyOf(zone, token)).toBeNull();
    expect(db.asked).toBe(4);
    for (const token of ["", "0".repeat(25), "0".repeat(27), `${"0".repeat(25)}_`, "_domainkey"])
      expect(await keyOf(zone, token)).toBeNull();
    expect(db.asked).toBe(4);
  });

  test("a customer's key is SERVFAIL while the database fails: never that there is none", async () => {
    const db = watched(api.db);
    const zone = await openZone({ db, clock: api.clock }, SETTINGS);
    const { key } = await registered("a.example.com");
    db.state = "failing";
    expect(String(await reason(keyOf(zone, key.token)))).toContain("SQLITE_IOERR");
    db.state = "fine";
    expect(await keyOf(zone, key.token)).not.toBeNull();
  });

  test("a customer's key waits with a limited number of others if the database hangs, and one more fails at once", async () => {
    const db = watched(api.db);
    const zone = await openZone({ db, clock: api.clock }, SETTINGS);
    db.state = "hanging";
    db.asked = 0;
    const token = (at: number) => String(at).padStart(26, "0");
    const lookups = Array.from({ length: 32 + 1000 }, (_, at) => keyOf(zone, token(at)).catch(String));
    expect(String(await reason(keyOf(zone, token(5000))))).toContain("too many lookups");
    expect(db.asked).toBe(32);
    // Each gives up its place in time, and later ones find a database that answers.
    db.state = "fine";
    api.clock.advance(2999);
    expect(db.asked).toBe(32);
    api.clock.advance(1);
    const ends = await Promise.all(lookups);
    expect(new Set(ends.slice(0, 32))).toEqual(new Set(["Error: the database does not answer"]));
    expect(new Set(ends.slice(32))).toEqual(new Set([null]));
    expect(api.clock.pending()).toBe(0);
  });
});

test("the keys of our own names are where their signatures point", async () => {
  await ensureInstallationKey(api.domains, api.clock.now());
  const zone = await openZone(api, SETTINGS);
  for (const name of [`pr1._domainkey.onboarding.${SERVICE_DOMAIN}`, `pr1._domainkey.${SERVICE_DOMAIN}`])
    expect(zone.records.filter((record) => record.name === name)).toEqual([
      { name, ttl: KEY_TTL_SECONDS, type: "TXT", data: expect.stringMatching(/^v=DKIM1; k=rsa; p=MII/) },
    ]);
});

test("the serial is the time, so that it rises with every change", async () => {
  const zone = await openZone(api, SETTINGS);
  const before = (await zone.soa()).data.serial;
  api.clock.advance(1000);
  expect((await zone.soa()).data.serial).toBe(before + 1);
});

describe("settings", () => {
  const shown = async (settings: Partial<ZoneSettings>, type: string): Promise<string[]> => {
    const { records } = await openZone(api, { ...SETTINGS, ...settings });
    return records.flatMap((record) =>
      record.type === type ? [`${record.name.replace(SERVICE_DOMAIN, "@")} ${String(record.data)}`] : [],
    );
  };

  test("PUBLIC_IPS are the addresses of the zone's name, ns. and all below it, mx. and mta-sts., and in spf.", async () => {
    const hosts = ["ns.@", "*.ns.@", "@", "mx.@", "mta-sts.@"];
    expect(await shown({}, "A")).toEqual(hosts.map((host) => `${host} 192.0.2.1`));
    expect(await shown({}, "AAAA")).toEqual(hosts.map((host) => `${host} 2001:db8::1`));
    expect(await shown({}, "TXT")).toContain("spf.@ v=spf1 ip4:192.0.2.1 ip6:2001:db8::1 ~all");
  });

  test("without PUBLIC_IPS the SPF record is neutral", async () => {
    expect(await shown({ publicIps: [] }, "A")).toEqual([]);
    expect(await shown({ publicIps: [] }, "TXT")).toContain("spf.@ v=spf1 ?all");
  });

  test.each([
    [`https://api.${SERVICE_DOMAIN}`, ["api.@"]],
    [`https://${SERVICE_DOMAIN}:8443/x`, []],
    [`https://mx.${SERVICE_DOMAIN}`, []],
    [`https://ns.${SERVICE_DOMAIN}`, []],
    [`https://not${SERVICE_DOMAIN}`, []],
    ["http://192.0.2.9:3000", []],
    ["http://[::1]:3000", []],
  ])("PUBLIC_URL=%s has addresses here if its name is in the zone", async (publicUrl, more: string[]) => {
    const hosts = await shown({ publicUrl }, "A");
    expect(hosts.map((line) => line.split(" ")[0] ?? "")).toEqual([
      "ns.@",
      "*.ns.@",
      "@",
      "mx.@",
      "mta-sts.@",
      ...more,
    ]);
  });
});

test("the printed zone has every published key, and no expired one", async () => {
  const { id, key } = await registered("a.example.com");
  const now = api.clock.now();
  const token = (at: number) => String(at).padStart(26, "0");
  const extra = Array.from({ length: 1003 }, (_, at) =>
    insertDkimKey({
      token: token(at),
      domainId: id,
      selector: "pr2",
      algorithm: "rsa",
      publicKey: "MIIB",
      sealedPrivateKey: "",
      status: "retired",
      retireAt: at === 7 ? now : now + 60_000,
      createdAt: now,
    }),
  );
  await api.db.write(extra.slice(0, 900));
  await api.db.write(extra.slice(900));
  let printed = "";
  for await (const lines of zoneFile(api, SETTINGS)) printed += `${lines}\n`;
  const keys = [...printed.matchAll(new RegExp(`^(\\w{26})\\.dkim\\.${SERVICE_DOMAIN}\\. `, "gm"))];
  expect(new Set(keys.map((match) => match[1])).size).toBe(1003);
  expect(printed).toContain(`${key.token}.dkim.`);
  expect(printed).not.toContain(token(7));
  // Only the SOA may be first.
  expect(printed.startsWith(`${SERVICE_DOMAIN}. 3600 IN SOA `)).toBe(true);
});
