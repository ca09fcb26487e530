import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { dkimVerify } from "mailauth/lib/dkim/verify";
import { systemClock } from "../../src/clock.ts";
import { nodeStyleResolver } from "../../src/net/dns/node-style-resolver.ts";
import { joinedStrings } from "../../src/net/dns/lookups.ts";
import { createResolver, type Resolver } from "../../src/net/dns/resolver.ts";
import { publish, type ShownRecord, startDns, type TestDns } from "../support/dns.ts";
import { run, startUnbound, type TestUnbound, titled, toolMissing } from "../support/dns-tools.ts";
import { hurried } from "../support/hurried-clock.ts";
import { deliveredRecord } from "../support/mail-in.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { until } from "../support/poll.ts";
import { freePort } from "../support/redis.ts";
import { SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";

const DOMAIN = "news.customer.test";
const RECIPIENT = "reader.test";
/** The name of our name server for one registration. */
const OUR_NAME = /^[0-9a-z]{26}\.ns\.mail\.test$/;
const LIMIT_MS = 90_000;
setDefaultTimeout(LIMIT_MS);
/** Timers run so much faster than the system's, because the name server keeps a zone for a second. */
const HURRY = 5;

let service: TestService;
/** The zones of other owners: the customer's parent zone, and the recipient's. */
let world: TestDns;
let peer: TestMx;
let port: number;
let id: string;
let resolver: Resolver;

beforeAll(async () => {
  world = await startDns(
    { name: RECIPIENT, type: "MX", data: { preference: 10, exchange: `mx.${RECIPIENT}` } },
    { name: `mx.${RECIPIENT}`, type: "A", data: "127.0.0.1" },
  );
  peer = startMx();
  const dnsPort = freePort();
  service = await startService(
    {
      DNS_HOST: "127.0.0.1",
      DNS_PORT: String(dnsPort),
      PUBLIC_IPS: "192.0.2.10",
      DNS_SERVERS: world.address,
      DELIVERY: "mx",
      SMTP_OUT_PORT: String(peer.port),
    },
    hurried(HURRY),
  );
  port = service.app.ports.dns ?? 0;
  resolver = createResolver({ clock: systemClock }, { servers: [{ ip: "127.0.0.1", port }] });
}, LIMIT_MS);

afterAll(async () => {
  await service?.stop();
  world?.stop();
  peer?.stop();
});

/** Returns the data of the records at a name, as strings, or the status of the answer. */
async function asked(
  name: string,
  type: string,
  by: Resolver = resolver,
): Promise<readonly string[] | string> {
  const result = await by.resolve(name, type as "TXT", { fresh: true });
  if (result.status !== "ok") return result.status;
  return result.records
    .map((record) => {
      if (record.type === "TXT") return joinedStrings(record.data);
      if (record.type === "MX") return `${record.data.preference} ${record.data.exchange.toLowerCase()}`;
      return "data" in record ? String(record.data).toLowerCase() : record.type;
    })
    .sort();
}

/** Waits until the name server, which keeps a zone for a second, has this answer. */
async function untilServed(name: string, type: string, answer: readonly string[] | string): Promise<void> {
  await until(async () => Bun.deepEquals(await asked(name, type), answer));
}

interface Delegated {
  delegation: { records: { value: string }[] };
}
const hostOf = ({ delegation }: Delegated): string => delegation.records[0]?.value ?? "";

function add(body: object, at = id) {
  return service.call("POST", `/v1/domains/${at}/records`, body);
}

describe("a delegated domain", () => {
  test("a delegated domain is verified by its NS record alone, and refused before that", async () => {
    const made = await service.call("POST", "/v1/domains", { domain: DOMAIN, delegated: true });
    expect(made.status).toBe(201);
    expect(made.body.records).toHaveLength(3);
    expect(made.body.delegation).toEqual({
      status: "pending",
      records: [{ type: "NS", name: DOMAIN, value: expect.stringMatching(OUR_NAME) }],
    });
    id = made.body.id;
    const host = hostOf(made.body);
    expect([await asked(DOMAIN, "NS"), await asked(host, "A")]).toEqual(["failure", ["192.0.2.10"]]);
    expect((await service.call("POST", `/v1/domains/${id}/verify`)).body).toMatchObject({
      status: "pending",
      delegation: { status: "pending" },
    });
    world.add({ name: DOMAIN, type: "NS", data: host });
    const { body } = await service.call("POST", `/v1/domains/${id}/verify`);
    expect(body).toMatchObject({ status: "verified", delegation: { status: "active" } });
    expect(body.records.map(({ status }: { status: string }) => status)).toEqual(Array(3).fill("verified"));
    expect(await asked(DOMAIN, "NS")).toEqual([host]);
  });

  test("a delegated domain has its own return path in the zone without a record of its owner's", async () => {
    const { body } = await service.call("GET", `/v1/domains/${id}`);
    const alias = { type: "CNAME", name: `bounce.${DOMAIN}`, value: `bounce.${SERVICE_DOMAIN}` };
    expect(body.recommended).toEqual([{ ...alias, purpose: "return_path", verified: true }]);
    expect(await asked(alias.name, "CNAME")).toEqual([alias.value]);
    const inTheWay = await add({ type: "MX", name: alias.name, value: "mx.example.com" });
    expect([inTheWay.status, inTheWay.body.error.type]).toEqual([409, "conflict"]);
  });

  test("a delegated domain receives without another record, and mail comes in", async () => {
    const { status, body } = await service.call("PATCH", `/v1/domains/${id}/receiving`, { enabled: true });
    expect(status).toBe(200);
    expect(body.records[0]).toMatchObject({ type: "MX", verified: true });
    await untilServed(DOMAIN, "MX", [`10 mx.${SERVICE_DOMAIN}`]);
    await service.call("POST", "/v1/inboxes", { address: `desk@${DOMAIN}` });
    const record = await deliveredRecord(service, { to: `desk@${DOMAIN}`, headers: ["Subject: In"] });
    expect(record).toMatchObject({ subject: "In", direction: "inbound" });
  });

  test("a delegated domain has the records of its owner, none of which is in the way of another", async () => {
    const rows: [object, number, object?][] = [
      [{ type: "A", name: `www.${DOMAIN}`, value: "192.0.2.7" }, 201],
      [{ type: "A", name: `www.${DOMAIN}`, value: "192.0.2.7" }, 409, { code: "duplicate" }],
      [{ type: "AAAA", name: `WWW.${DOMAIN}.`, value: "2001:db8::7", ttl: 60 }, 201],
      [{ type: "CNAME", name: `shop.${DOMAIN}`, value: "shops.example.com" }, 201],
      [{ type: "TXT", name: `shop.${DOMAIN}`, value: "beside an alias" }, 409, { type: "conflict" }],
      [{ type: "CNAME", name: `www.${DOMAIN}`, value: "a.example.com" }, 409, { type: "conflict" }],
      [{ type: "CNAME", name: DOMAIN, value: "a.example.com" }, 409, { type: "conflict" }],
      [{ type: "TXT", name: DOMAIN, value: "site-verification=1" }, 201],
      [{ type: "TXT", name: DOMAIN, value: "v=spf1 -all" }, 409, { type: "conflict" }],
      [{ type: "TXT", name: `_dmarc.${DOMAIN}`, value: "v=DMARC1; p=none" }, 409, { type: "conflict" }],
      [{ type: "TXT", name: `pr2._domainkey.${DOMAIN}`, value: "p=" }, 409, { type: "conflict" }],
      [{ type: "TXT", name: `k._domainkey.${DOMAIN}`, value: "x".repeat(2000) }, 201],
      [{ type: "TXT", name: `k._domainkey.${DOMAIN}`, value: "x".repeat(2001) }, 422, { param: "value" }],
      [{ type: "MX", name: DOMAIN, value: "mx.example.com" }, 409, { type: "conflict" }],
      [{ type: "MX", name: `in.${DOMAIN}`, value: "mx.example.com", priority: 5 }, 201],
      [{ type: "CAA", name: `www.${DOMAIN}`, value: '0 issue "ca.example"' }, 201],
      [{ type: "CAA", name: `www.${DOMAIN}`, value: "ca.example" }, 422, { param: "value" }],
      [{ type: "A", name: `*.wild.${DOMAIN}`, value: "192.0.2.8" }, 201],
      [{ type: "A", name: "www.example.com", value: "192.0.2.7" }, 422, { param: "name" }],
      [{ type: "A", name: `x${DOMAIN}`, value: "192.0.2.7" }, 422, { param: "name" }],
      [{ type: "A", name: `www.${DOMAIN}`, value: "2001:db8::7" }, 422, { param: "value" }],
      [{ type: "A", name: `www.${DOMAIN}`, value: "192.0.2.7", priority: 1 }, 422, { param: "priority" }],
      [{ type: "AAAA", name: `www.${DOMAIN}`, value: "fe80::1%eth0" }, 422, { param: "value" }],
      [{ type: "A", name: `www.${DOMAIN}`, value: "192.0.2.7", ttl: 59 }, 422, { param: "ttl" }],
    ];
    for (const [body, status, error = {}] of rows) {
      const answer = await add(body);
      expect([body, answer.status]).toEqual([body, status]);
      if (status !== 201) expect(answer.body.error).toMatchObject(error);
    }
    await untilServed(`any.wild.${DOMAIN}`, "A", ["192.0.2.8"]);
    expect(await asked(`www.${DOMAIN}`, "A")).toEqual(["192.0.2.7"]);
    expect(await asked(`none.${DOMAIN}`, "A")).toBe("nxdomain");
    expect(await asked(`www.${DOMAIN}`, "MX")).toBe("nodata");
    expect(await asked(`k._domainkey.${DOMAIN}`, "TXT")).toEqual(["x".repeat(2000)]);
  });

  test("a delegated domain has no TLSA record, recommended or of its owner, because its zone is not signed", async () => {
    const refused = await add({
      type: "TLSA",
      name: `_25._tcp.mx.${DOMAIN}`,
      value: `3 1 1 ${"00".repeat(32)}`,
    });
    expect([refused.status, refused.body.error.param]).toEqual([422, "type"]);
    const { body } = await service.call("GET", `/v1/domains/${id}`);
    const shown = [...body.records, ...body.recommended].map(({ type }: { type: string }) => type);
    expect(shown.filter((type) => !["TXT", "CNAME", "MX"].includes(type))).toEqual([]);
  });

  test("its records are paged and deleted", async () => {
    const page = await service.call("GET", `/v1/domains/${id}/records?limit=2`);
    expect(page.body).toMatchObject({ data: [{ name: `*.wild.${DOMAIN}` }, { type: "CAA" }] });
    const [record] = page.body.data;
    const path = `/v1/domains/${id}/records/${record.id}`;
    expect((await service.call("DELETE", path)).status).toBe(204);
    expect((await service.call("DELETE", path)).status).toBe(404);
    await untilServed(`any.wild.${DOMAIN}`, "A", "nxdomain");
  });

  test("a delegated domain sends mail that is signed with the key in its zone, also after a rotation", async () => {
    const { body } = await service.call("POST", "/v1/emails", {
      from: { email: `news@${DOMAIN}` },
      to: [{ email: `somebody@${RECIPIENT}` }],
      subject: "Signed",
      text: "The key is in the zone that we hold.\n",
    });
    await service.message(body.id, "delivered");
    const mail = peer.messages.items[0]?.data ?? Buffer.alloc(0);
    const node = nodeStyleResolver(resolver);
    const verified = await dkimVerify(mail, {
      resolver: async (name: string, type: string) => (await node(name, type)) as string[][],
    });
    expect(verified.results.map(({ status }) => status.result)).toEqual(["pass"]);
    const rotated = await service.call("POST", `/v1/domains/${id}/rotate-dkim`);
    expect(rotated.status).toBe(200);
    await until(async () => Array.isArray(await asked(`pr2._domainkey.${DOMAIN}`, "TXT")));
    // Both keys are published, because messages in transit have the first one's signature.
    expect(await asked(`pr1._domainkey.${DOMAIN}`, "TXT")).toBeArrayOfSize(1);
  });

  test("a delegation above it or below it is refused, and one of the service's own names", async () => {
    for (const domain of ["customer.test", `deep.${DOMAIN}`]) {
      const refused = await service.call("POST", "/v1/domains", { domain, delegated: true });
      expect([domain, refused.status]).toEqual([domain, 409]);
    }
    const deep = { domain: "a.b.c.d.e.f.g.h.i.deep.test", delegated: true };
    expect((await service.call("POST", "/v1/domains", deep)).status).toBe(422);
  });
});

const TOOLS = toolMissing("unbound", "dig", "kdig");
test.skipIf(TOOLS !== null)(
  titled("unbound, dig and kdig agree with our resolver on every record", TOOLS),
  async () => {
    const unbound: TestUnbound = await startUnbound({ [DOMAIN]: port, [SERVICE_DOMAIN]: port });
    try {
      const through = createResolver({ clock: systemClock }, { servers: [unbound] });
      const names: [string, string][] = [
        [DOMAIN, "NS"],
        [DOMAIN, "SOA"],
        [DOMAIN, "TXT"],
        [DOMAIN, "MX"],
        [`pr1._domainkey.${DOMAIN}`, "TXT"],
        [`pr2._domainkey.${DOMAIN}`, "TXT"],
        [`_dmarc.${DOMAIN}`, "TXT"],
        [`_smtp._tls.${DOMAIN}`, "TXT"],
        [`www.${DOMAIN}`, "A"],
        [`www.${DOMAIN}`, "AAAA"],
        [`www.${DOMAIN}`, "CAA"],
        [`shop.${DOMAIN}`, "CNAME"],
        [`in.${DOMAIN}`, "MX"],
        [`k._domainkey.${DOMAIN}`, "TXT"],
        [`none.${DOMAIN}`, "A"],
        [`_domainkey.${DOMAIN}`, "A"],
      ];
      for (const [name, type] of names) {
        if (type !== "SOA")
          expect([name, type, await asked(name, type, through)]).toEqual([
            name,
            type,
            await asked(name, type),
          ]);
        const said = async (program: string) => {
          const asks = [program, "+short", "-p", String(port), "@127.0.0.1", name, type];
          const lines = (await run(asks)).output.trim().split("\n");
          // kdig tells that it asked again by TCP.
          return lines.filter((line) => !line.startsWith(";;")).sort();
        };
        // The serial is the time in seconds.
        if (type !== "SOA") expect([name, type, await said("kdig")]).toEqual([name, type, await said("dig")]);
      }
    } finally {
      await unbound.stop();
    }
  },
);

test("if our own name server is in DNS_SERVERS, it does not prove a delegation", async () => {
  const dns = { ip: "127.0.0.1", port };
  const name = "proof.test";
  const { body } = await service.call("POST", "/v1/domains", { domain: name, delegated: true });
  world.add({ name, type: "NS", data: hostOf(body) });
  await service.call("POST", `/v1/domains/${body.id}/verify`);
  world.remove(name);
  const only = createResolver({ clock: systemClock }, { servers: [dns], ownZone: SERVICE_DOMAIN });
  expect(await asked(name, "NS")).toEqual([hostOf(body)]);
  expect(await asked(name, "NS", only)).toBe("failure");
  expect(await asked(SERVICE_DOMAIN, "NS", only)).toEqual([`ns.${SERVICE_DOMAIN}`]);
  const both = createResolver({ clock: systemClock }, { servers: [dns, world], ownZone: SERVICE_DOMAIN });
  expect(await asked(name, "NS", both)).toBe("nxdomain");
});

describe("a switch", () => {
  const BY_HAND = "hand.customer.test";
  let made: { id: string; records: ShownRecord[] };

  test("a switch to a delegated zone keeps the domain verified by its own records until the NS record is seen", async () => {
    made = (await service.call("POST", "/v1/domains", { domain: BY_HAND })).body;
    publish(world, made.records);
    const record = { type: "A", name: `www.${BY_HAND}`, value: "192.0.2.1" };
    expect((await add(record, made.id)).body.error).toMatchObject({ code: "invalid_state" });
    expect((await service.call("POST", `/v1/domains/${made.id}/verify`)).body.status).toBe("verified");
    const switched = await service.call("PATCH", `/v1/domains/${made.id}`, { delegated: true });
    expect(switched.body).toMatchObject({ status: "verified", delegation: { status: "pending" } });
    await untilServed(BY_HAND, "NS", [hostOf(switched.body)]);
    for (const { name } of made.records) world.remove(name);
    world.add({ name: BY_HAND, type: "NS", data: hostOf(switched.body) });
    const seen = await service.call("POST", `/v1/domains/${made.id}/verify`);
    expect(seen.body).toMatchObject({ status: "verified", delegation: { status: "active" } });
  });

  test("switching back lists the missing records, and the zone is served until they are published", async () => {
    const back = () => service.call("PATCH", `/v1/domains/${made.id}`, { delegated: false });
    const held = await back();
    expect([held.status, held.body.error.message]).toEqual([409, expect.stringContaining("NS record")]);
    world.remove(BY_HAND);
    const missing = await back();
    expect(missing.status).toBe(409);
    expect(missing.body.error.message).not.toContain("bounce.");
    for (const { name, value } of made.records) {
      expect(missing.body.error.message).toContain(name);
      expect(missing.body.error.message).toContain(value);
    }
    const failing = await service.call("POST", `/v1/domains/${made.id}/verify`);
    expect(failing.body).toMatchObject({ status: "verified", delegation: { status: "failing" } });
    publish(world, made.records);
    const done = await back();
    expect([done.status, done.body.status, done.body.delegation]).toEqual([200, "verified", undefined]);
    // It went with our zone.
    expect(done.body.recommended).toMatchObject([{ purpose: "return_path", verified: false }]);
    await until(async () => (await asked(BY_HAND, "NS")) === "failure");
  });
});

test("a domain has at most 200 records of its owner, and 20 of one type at a name", async () => {
  const { id: full } = (await service.call("POST", "/v1/domains", { domain: "full.test", delegated: true }))
    .body;
  const one = (at: number, name: string) =>
    add({ type: "TXT", name: `${name}.full.test`, value: `v${at}` }, full);
  for (let at = 0; at < 20; at++) expect((await one(at, "same")).status).toBe(201);
  const quota = { code: "quota_exceeded", param: "records" };
  expect((await one(20, "same")).body.error).toMatchObject(quota);
  const more = await Promise.all(Array.from({ length: 185 }, (_, at) => one(at, `n${at}`)));
  expect(more.filter(({ status }) => status === 201)).toHaveLength(180);
  expect((await one(0, "last")).body.error).toMatchObject(quota);
});
