import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { dkimVerify } from "mailauth/lib/dkim/verify";
import { systemClock } from "../../src/clock.ts";
import { nodeStyleResolver } from "../../src/net/dns/node-style-resolver.ts";
import { createResolver } from "../../src/net/dns/resolver.ts";
import { signingKeys } from "../../src/store/messages/sending.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { publish as publishInDns, type ShownRecord } from "../support/dns.ts";
import { freePort } from "../support/redis.ts";
import { startService } from "../support/service.ts";

const NAME = "news.example.com";
const WEEK = 7 * 24 * 3_600_000;
const LIMIT_MS = 90_000;
setDefaultTimeout(LIMIT_MS);

describe("a domain with keys of two algorithms", () => {
  let api: TestApi;
  let id: string;
  beforeEach(async () => {
    api = await testApi();
  });
  afterEach(() => api.close());

  const register = async (body: object) => {
    const made = await api.call("POST", "/v1/domains", { body: { domain: NAME, ...body } });
    id = made.json.id;
    return made;
  };
  const rotate = (body?: object) =>
    api.call("POST", `/v1/domains/${id}/rotate-dkim`, body === undefined ? {} : { body });
  const verified = async () => (await api.call("POST", `/v1/domains/${id}/verify`)).json;
  const publish = (records: readonly ShownRecord[], of = /./) => {
    for (const { type, name, value } of records) if (of.test(name)) api.zone.set(`${type} ${name}`, [value]);
  };
  const selectors = (records: readonly ShownRecord[]) =>
    records.filter(({ name }) => name.includes("_domainkey")).map(({ name }) => name.split(".")[0]);
  const signing = async () =>
    (await signingKeys(api.db, api.acme.a.id, NAME)).map(({ selector }) => selector);

  test.each([
    ["no choice", {}, ["pr1"]],
    ["rsa", { dkimKeys: "rsa" }, ["pr1"]],
    ["ed25519", { dkimKeys: "ed25519" }, ["pe1"]],
    ["both", { dkimKeys: "both" }, ["pr1", "pe1"]],
  ])("a domain with keys of two algorithms has a record for each key: %s", async (_, body, expected) => {
    const { status, json } = await register(body);
    expect([status, selectors(json.records)]).toEqual([201, expected]);
    expect(json.records).toHaveLength(2 + expected.length);
    expect((await api.call("GET", `/v1/domains/${id}`)).json.records).toEqual(json.records);
    expect(await signing()).toEqual(expected);
  });

  test("a domain with keys of two algorithms is asked for one of the three choices", async () => {
    const { status, json } = await register({ dkimKeys: "dsa" });
    expect([status, json.error.param]).toEqual([422, "dkimKeys"]);
  });

  test("a domain with keys of two algorithms is verified only with the records of both", async () => {
    const { json } = await register({ dkimKeys: "both" });
    publish(json.records, /^(?!pe1)/);
    const half = await verified();
    expect([half.status, half.authHealth.dkim]).toEqual(["pending", "pending"]);
    expect(half.records.map(({ status }: { status: string }) => status)).toEqual([
      "verified",
      "missing",
      "verified",
      "verified",
    ]);
    publish(json.records);
    expect((await verified()).status).toBe("verified");
  });

  test("signs with new keys once the records of both are published", async () => {
    publish((await register({ dkimKeys: "both" })).json.records);
    await verified();
    const { json } = await rotate();
    expect(selectors(json.records).sort()).toEqual(["pe1", "pe2", "pr1", "pr2"]);
    publish(json.records, /^pr2/);
    expect([(await verified()).status, await signing()]).toEqual(["verified", ["pr1", "pe1"]]);
    publish(json.records);
    expect([(await verified()).status, await signing()]).toEqual(["verified", ["pr2", "pe2"]]);
    expect((await rotate()).json.error.code).toBe("invalid_state");
  });

  test("a domain with keys of two algorithms changes to other algorithms by a rotation, and back under the same names", async () => {
    publish((await register({})).json.records);
    await verified();
    const steps: [string | undefined, string[]][] = [
      ["both", ["pr2", "pe1"]],
      ["ed25519", ["pe2"]],
      [undefined, ["pe1"]],
      ["rsa", ["pr1"]],
    ];
    for (const [dkimKeys, expected] of steps) {
      const { status, json } = await rotate(dkimKeys === undefined ? undefined : { dkimKeys });
      expect(status).toBe(200);
      publish(json.records);
      expect([(await verified()).status, await signing()]).toEqual(["verified", expected]);
      expect(selectors((await verified()).records)).toEqual(expected);
      api.clock.advance(WEEK);
    }
  });

  test("a domain with keys of two algorithms gives up keys that were never published for a rotation to others, but not for the same", async () => {
    publish((await register({})).json.records);
    await verified();
    expect((await rotate({ dkimKeys: "ed25519" })).status).toBe(200);
    expect((await rotate({ dkimKeys: "ed25519" })).json.error.code).toBe("invalid_state");
    expect((await rotate()).json.error.code).toBe("invalid_state");
    const changed = await rotate({ dkimKeys: "rsa" });
    expect([changed.status, selectors(changed.json.records)]).toEqual([200, ["pr1", "pr2"]]);
    publish(changed.json.records);
    await verified();
    expect(await signing()).toEqual(["pr2"]);
  });
});

test("messages of a delegated and of another domain have both signatures, whose keys our name server has", async () => {
  const dnsPort = freePort();
  const service = await startService({ DNS_HOST: "127.0.0.1", DNS_PORT: String(dnsPort) });
  const ownServer = createResolver(
    { clock: systemClock },
    { servers: [{ ip: "127.0.0.1", port: service.app.ports.dns ?? 0 }] },
  );
  const register = async (domain: string, delegated: boolean): Promise<ShownRecord[]> => {
    const made = await service.call("POST", "/v1/domains", { domain, delegated, dkimKeys: "both" });
    if (!delegated) publishInDns(service.dns, made.body.records);
    else service.dns.add({ name: domain, type: "NS", data: made.body.delegation.records[0].value });
    const { body } = await service.call("POST", `/v1/domains/${made.body.id}/verify`);
    expect(body.status).toBe("verified");
    return made.body.records;
  };
  const signed = async (domain: string, text: string, alias: Map<string, string>) => {
    const sent = await service.call("POST", "/v1/emails", {
      from: { email: `a@${domain}` },
      to: [{ email: "b@elsewhere.test" }],
      subject: "Signed",
      text,
    });
    await service.message(sent.body.id, "delivered");
    const raw = (await service.call("GET", `/v1/emails/${sent.body.id}/raw`)).body;
    const ask = nodeStyleResolver(ownServer);
    const { results } = await dkimVerify(Buffer.from(raw), {
      resolver: async (name, type) => (await ask(alias.get(name) ?? name, type)) as string[][],
    });
    return results.map(({ selector, algo, status }) => [selector, algo, status.result]);
  };
  const both = [
    ["pr1", "rsa-sha256", "pass"],
    ["pe1", "ed25519-sha256", "pass"],
  ];
  await register("news.customer.test", true);
  expect(await signed("news.customer.test", "Hi", new Map())).toEqual(both);
  // This one publishes aliases, which the test's DNS has.
  const records = await register("other.test", false);
  const alias = new Map(records.map(({ name, value }) => [name, value]));
  expect(await signed("other.test", "Hi", alias)).toEqual(both);
  // On a thread, because it is large.
  expect(await signed("other.test", "A line of a long message.\n".repeat(4000), alias)).toEqual(both);
  const zone = await service.call("GET", "/v1/domains");
  const [{ id }] = zone.body.data.filter(({ domain }: { domain: string }) => domain === "news.customer.test");
  const refused = await service.call("POST", `/v1/domains/${id}/records`, {
    type: "TXT",
    name: "pe2._domainkey.news.customer.test",
    value: "mine",
  });
  expect([refused.status, refused.body.error.param]).toEqual([409, "name"]);
  await service.stop();
});
