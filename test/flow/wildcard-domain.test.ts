import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { dkimVerify } from "mailauth/lib/dkim/verify";
import { systemClock } from "../../src/clock.ts";
import { joinedStrings } from "../../src/net/dns/lookups.ts";
import { nodeStyleResolver } from "../../src/net/dns/node-style-resolver.ts";
import { createResolver, type Resolver } from "../../src/net/dns/resolver.ts";
import { startDns, type TestDns } from "../support/dns.ts";
import { run, titled, toolMissing } from "../support/dns-tools.ts";
import { hurried } from "../support/hurried-clock.ts";
import { deliver, deliveredRecord } from "../support/mail-in.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { until } from "../support/poll.ts";
import { freePort } from "../support/redis.ts";
import { SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";

const DOMAIN = "help.customer.test";
const RECIPIENT = "reader.test";
const LIMIT_MS = 90_000;
setDefaultTimeout(LIMIT_MS);
/** The name server keeps a zone for a second. */
const HURRY = 5;

let service: TestService;
let world: TestDns;
let peer: TestMx;
let port: number;
let resolver: Resolver;
let path: string;

beforeAll(async () => {
  world = await startDns(
    { name: RECIPIENT, type: "MX", data: { preference: 10, exchange: `mx.${RECIPIENT}` } },
    { name: `mx.${RECIPIENT}`, type: "A", data: "127.0.0.1" },
  );
  peer = startMx();
  service = await startService(
    {
      DNS_HOST: "127.0.0.1",
      DNS_PORT: String(freePort()),
      PUBLIC_IPS: "192.0.2.10",
      DNS_SERVERS: world.address,
      DELIVERY: "mx",
      SMTP_OUT_PORT: String(peer.port),
    },
    hurried(HURRY),
  );
  port = service.app.ports.dns ?? 0;
  resolver = createResolver({ clock: systemClock }, { servers: [{ ip: "127.0.0.1", port }] });
  const made = await service.call("POST", "/v1/domains", { domain: DOMAIN, delegated: true });
  expect(made).toMatchObject({ status: 201, body: { wildcard: false } });
  path = `/v1/domains/${made.body.id}`;
  world.add({ name: DOMAIN, type: "NS", data: made.body.delegation.records[0].value });
  expect((await service.call("POST", `${path}/verify`)).body.status).toBe("verified");
  expect((await service.call("PATCH", `${path}/receiving`, { enabled: true })).status).toBe(200);
}, LIMIT_MS);
afterAll(async () => {
  await service?.stop();
  world?.stop();
  peer?.stop();
});

/** Returns the records at a name, or the status of the answer. */
async function asked(name: string, type: "TXT" | "MX"): Promise<string[] | string> {
  const found = await resolver.resolve(name, type, { fresh: true });
  if (found.status !== "ok") return found.status;
  const shown = found.records.map((record) => {
    if (record.type === "TXT") return joinedStrings(record.data);
    return record.type === "MX" ? record.data.exchange.toLowerCase() : record.type;
  });
  return shown.sort();
}

const inbox = (address: string) => service.call("POST", "/v1/inboxes", { address });
const own = (body: object) => service.call("POST", `${path}/records`, body);
const wildcard = (on: boolean) => service.call("PATCH", path, { wildcard: on });
const record = async (id: string) => (await service.call("GET", `/v1/emails/${id}`)).body;

test("without a wildcard, no name below a delegated domain has an MX record or an inbox", async () => {
  expect(await asked(`x.${DOMAIN}`, "MX")).toBe("nxdomain");
  expect(await inbox(`a@x.${DOMAIN}`)).toMatchObject({ status: 422, body: { error: { param: "address" } } });
  expect(await deliver(service, { to: `a@x.${DOMAIN}` })).toStartWith("550 5.1.2");
});

test("a wildcard publishes MX, SPF and DMARC for names below the domain, and for none that exists", async () => {
  await own({ type: "A", name: `host.deep.${DOMAIN}`, value: "192.0.2.7" });
  expect(await wildcard(true)).toMatchObject({ status: 200, body: { wildcard: true } });
  await until(async () => Array.isArray(await asked(`any.${DOMAIN}`, "MX")));
  const mx = [`mx.${SERVICE_DOMAIN}`];
  for (const name of ["any", "a.b.any"]) expect(await asked(`${name}.${DOMAIN}`, "MX")).toEqual(mx);
  const policies = [expect.stringMatching(/^v=DMARC1; p=none/), expect.stringMatching(/^v=spf1 include:/)];
  for (const name of ["any", "_dmarc.any"]) expect(await asked(`${name}.${DOMAIN}`, "TXT")).toEqual(policies);
  // Names that exist, some without records, and names below them (RFC 4592 §2.2.2).
  for (const [name, answer] of [
    ["_domainkey", "nodata"],
    ["deep", "nodata"],
    ["host.deep", "nodata"],
    ["_dmarc", "nodata"],
    ["x._domainkey", "nxdomain"],
    ["other.deep", "nxdomain"],
    ["a._tls", "nxdomain"],
  ])
    expect([name, await asked(`${name}.${DOMAIN}`, "MX")]).toEqual([name, answer]);
});

const noKdig = toolMissing("kdig");
test.skipIf(noKdig !== null)(
  titled("kdig gets the MX record of a wildcard over UDP and TCP", noKdig),
  async () => {
    for (const over of ["+notcp", "+tcp"]) {
      const command = ["kdig", "@127.0.0.1", "-p", String(port), over, "+short", `kdig.${DOMAIN}`, "MX"];
      expect((await run(command)).output).toContain(`10 mx.${SERVICE_DOMAIN}.`);
    }
  },
);

test("an inbox below the domain gets mail, and its reply is signed by the domain above with relaxed alignment", async () => {
  const made = await inbox(`Ask@shop.${DOMAIN}`);
  expect(made).toMatchObject({ status: 201, body: { address: `ask@shop.${DOMAIN}` } });
  const arrived = await deliveredRecord(service, {
    to: `ask+web@shop.${DOMAIN}`,
    headers: [`From: ann@${RECIPIENT}`],
  });
  expect(arrived.inboxId).toBe(made.body.id);
  const reply = await service.call("POST", `/v1/threads/${arrived.threadId}/reply`, { text: "Yes.\n" });
  const sent = await service.message(reply.body.id, "delivered");
  expect(sent).toMatchObject({ from: `ask@shop.${DOMAIN}`, inboxId: made.body.id });
  const { data, mailFrom } = peer.messages.items[0] ?? {};
  const node = nodeStyleResolver(resolver);
  const verified = await dkimVerify(data ?? Buffer.alloc(0), {
    resolver: async (name: string, type: string) => (await node(name, type)) as string[][],
  });
  expect(verified.results.map(({ signingDomain, status }) => [signingDomain, status.result])).toEqual([
    [DOMAIN, "pass"],
  ]);
  // SPF aligns in the same way, and bounces come back to the domain.
  expect(mailFrom).toEndWith(DOMAIN);
});

test("a catch-all below the domain takes the mail of its name, and leaves the rest and the postmaster alone", async () => {
  const made = await inbox(`*@eu.shop.${DOMAIN}`);
  expect((await deliveredRecord(service, { to: `any@eu.shop.${DOMAIN}` })).inboxId).toBe(made.body.id);
  expect((await deliveredRecord(service, { to: `postmaster@eu.shop.${DOMAIN}` })).inboxId).toBeNull();
  expect(await deliver(service, { to: `any@us.shop.${DOMAIN}` })).toStartWith("550 5.1.1");
});

test("a message may be sent from any name below the domain, and from none below a domain without a wildcard", async () => {
  const send = (from: string) =>
    service.call("POST", "/v1/emails", { from, to: `b@${RECIPIENT}`, subject: "Hi", text: "Hi" });
  const { body } = await send(`news@mail.${DOMAIN}`);
  expect((await service.message(body.id, "delivered")).from).toBe(`news@mail.${DOMAIN}`);
  expect(await send("news@mail.customer.test")).toMatchObject({
    status: 403,
    body: { error: { code: "domain_not_verified" } },
  });
  expect((await record(body.id)).inboxId).toBeNull();
});

test.each([
  ["an alias of ours", "bounce"],
  ["an empty name above the keys", "_domainkey"],
  ["a record of the owner's", "host.deep"],
  ["an empty name above a record of the owner's", "deep"],
  ["a name below that", "new.deep"],
  ["a name of our hosts", "links"],
])("an inbox cannot be at %s, which the wildcard does not reach", async (_, name) => {
  const { status, body } = await inbox(`a@${name}.${DOMAIN}`);
  expect([status, body.error.param]).toEqual([422, "address"]);
  expect(body.error.message).toContain("the wildcard");
});

test("records of the owner's cannot hide inboxes from the wildcard, or be beside ours", async () => {
  const value = "192.0.2.8";
  for (const name of ["shop", "www.shop", "us.shop", "*.shop"])
    expect([name, (await own({ type: "A", name: `${name}.${DOMAIN}`, value })).status]).toEqual([name, 409]);
  expect((await own({ type: "MX", name: `*.${DOMAIN}`, value: "mx.other.test" })).status).toBe(409);
  expect((await own({ type: "TXT", name: `*.${DOMAIN}`, value: "v=spf1 -all" })).status).toBe(409);
  for (const name of ["*", "www"])
    expect((await own({ type: "A", name: `${name}.${DOMAIN}`, value })).status).toBe(201);
});

test("a wildcard with inboxes below the domain cannot be turned off, nor can the delegation", async () => {
  const refused = { status: 409, body: { error: { code: "invalid_state", param: "wildcard" } } };
  expect(await wildcard(false)).toMatchObject(refused);
  expect((await service.call("GET", path)).body.wildcard).toBe(true);
  expect((await deliveredRecord(service, { to: `ask@shop.${DOMAIN}` })).threadId).toBeString();
});

test("a wildcard needs a delegated domain", async () => {
  const made = await service.call("POST", "/v1/domains", { domain: "plain.customer.test" });
  expect(made.body).not.toHaveProperty("wildcard");
  const at = `/v1/domains/${made.body.id}`;
  expect(await service.call("PATCH", at, { wildcard: true })).toMatchObject({
    status: 409,
    body: { error: { code: "invalid_state", param: "wildcard" } },
  });
  expect((await service.call("PATCH", at, { wildcard: false })).status).toBe(200);
  const wanted = { domain: "other.customer.test", wildcard: true };
  expect(await service.call("POST", "/v1/domains", wanted)).toMatchObject({
    status: 422,
    body: { error: { param: "wildcard" } },
  });
});

test("a wildcard that is turned on with the domain works, and is turned off when no inbox is below", async () => {
  const wanted = { domain: "new.customer.test", delegated: true, wildcard: true };
  const made = await service.call("POST", "/v1/domains", wanted);
  expect(made).toMatchObject({ status: 201, body: { wildcard: true } });
  const at = `/v1/domains/${made.body.id}`;
  const address = "a@x.new.customer.test";
  const box = await inbox(address);
  expect(box.status).toBe(201);
  expect((await service.call("PATCH", at, { delegated: false })).status).toBe(409);
  expect((await service.call("DELETE", `/v1/inboxes/${box.body.id}`)).status).toBe(204);
  expect(await service.call("PATCH", at, { wildcard: false })).toMatchObject({ body: { wildcard: false } });
  expect((await inbox(address)).status).toBe(422);
  await service.call("POST", `${at}/records`, { type: "MX", name: `*.${wanted.domain}`, value: "mx.a.test" });
  expect((await service.call("PATCH", at, { wildcard: true })).status).toBe(409);
});
