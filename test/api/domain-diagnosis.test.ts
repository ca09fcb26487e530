import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { listDkimKeys } from "../../src/store/domains/dkim-keys.ts";
import { SERVICE_DOMAIN, type TestApi, type TestZone, testApi } from "../support/api.ts";

/** A sound DMARC record of the domain above those of the tests. */
const PARENT = ["TXT _dmarc.shop.test", ["v=DMARC1; p=none; rua=mailto:reports@shop.test"]] as const;

let api: TestApi;
beforeAll(async () => {
  api = await testApi();
});
afterAll(() => api.close());

interface Shown {
  type: string;
  name: string;
  value: string;
  purpose: string;
  status: string;
  found: string[];
  problem: string | null;
  fix: string | null;
}

let made = 0;
const OURS = `include:spf.${SERVICE_DOMAIN}`;

/** A new domain with its three records published in the zones. */
async function published(zones: TestZone[] = [api.zone]) {
  const { json } = await api.call("POST", "/v1/domains", { body: { domain: `d${++made}.shop.test` } });
  for (const { type, name, value } of json.records as Shown[])
    for (const zone of zones) zone.set(`${type} ${name}`, [value]);
  const [dkim = "", spf = "", dmarc = ""] = (json.records as Shown[]).map(({ name }) => name);
  return { id: json.id as string, domain: json.domain as string, dkim, spf, dmarc };
}

async function diagnosis(id: string, purpose: string): Promise<Shown | undefined> {
  const { status, json } = await api.call("POST", `/v1/domains/${id}/verify`);
  expect(status).toBe(200);
  return (json.records as Shown[]).find((record) => record.purpose === purpose);
}

describe("a verified record", () => {
  test("a verified record shows its value, and no problem", async () => {
    const { id, spf } = await published();
    expect(await diagnosis(id, "spf")).toMatchObject({
      name: spf,
      status: "verified",
      found: [`v=spf1 ${OURS} ~all`],
      problem: null,
      fix: null,
    });
    expect(await diagnosis(id, "dkim")).toMatchObject({ status: "verified", problem: null, fix: null });
  });
});

describe("the SPF record", () => {
  const checked = async (id: string) => (await api.call("POST", `/v1/domains/${id}/verify`)).json;

  test("the SPF record is evaluated, and the answer has the lookups that it needs", async () => {
    const { id, spf } = await published();
    expect((await checked(id)).spf).toEqual({
      result: "pass",
      lookups: 1,
      voidLookups: 0,
      problem: null,
      fix: null,
    });
    api.zone.set(`TXT ${spf}`, [`v=spf1 a:x.test a:y.test a:z.test ${OURS} ~all`]);
    const { spf: evaluated, records } = await checked(id);
    const fix = `v=spf1 ${OURS} a:x.test a:y.test a:z.test ~all`;
    expect(evaluated).toMatchObject({
      result: "permerror",
      problem: expect.stringContaining("two names"),
      fix,
    });
    const [, record] = records as Shown[];
    expect(record).toMatchObject({ status: "wrong", problem: evaluated.problem, fix });
  });

  test("the SPF record is named if it is published with quotation marks, and so is a DMARC record", async () => {
    const { id, spf, dmarc } = await published();
    api.zone.set(`TXT ${spf}`, [`"v=spf1 ${OURS} ~all"`]).set(`TXT ${dmarc}`, ['"v=DMARC1; p=none"']);
    for (const purpose of ["spf", "dmarc"])
      expect(await diagnosis(id, purpose)).toMatchObject({
        status: "wrong",
        problem: expect.stringContaining("quotation marks"),
        fix: expect.not.stringContaining('"'),
        found: [expect.stringContaining('"')],
      });
  });
});

test("a domain with neither MX record nor address is named, and one with an address is not", async () => {
  const { id, domain } = await published();
  api.zone.set(...PARENT);
  const warnings = async () => (await api.call("POST", `/v1/domains/${id}/verify`)).json.warnings;
  expect(await warnings()).toEqual([
    expect.stringContaining(`${domain} has neither an MX record nor an address`),
  ]);
  api.zone.set(`A ${domain}`, ["192.0.2.5"]);
  expect(await warnings()).toEqual([]);
  api.zone.delete(PARENT[0]);
});

describe("the warnings of a check", () => {
  const DAY = 86_400_000;
  const LINK = /POST \/v1\/domains\/dom_\w+\/rotate-dkim/;
  test.each<[string, (at: { domain: string; dmarc: string; spf: string }) => void, RegExp]>([
    [
      "an SPF record near the limit of lookups",
      ({ spf }) => {
        for (const host of ["a", "b", "c", "d", "e", "f", "g", "h"])
          api.zone.set(`A ${host}.sent.test`, ["192.0.2.9"]);
        api.zone.set(`TXT ${spf}`, [
          `v=spf1 ${OURS} ${[..."abcdefgh"].map((host) => `a:${host}.sent.test`).join(" ")} ~all`,
        ]);
      },
      /needs 9 DNS lookups.*Take out an include/,
    ],
    [
      "a DMARC record without an address for reports",
      ({ dmarc }) => api.zone.set(`TXT ${dmarc}`, ["v=DMARC1; p=none"]),
      /no address for reports.*rua=mailto:/,
    ],
    [
      "strict alignment of SPF",
      ({ dmarc }) => api.zone.set(`TXT ${dmarc}`, ["v=DMARC1; p=none; aspf=s; rua=mailto:a@shop.test"]),
      /aspf=s.*Remove/,
    ],
    [
      "a domain above without DMARC",
      () => api.zone.delete("TXT _dmarc.shop.test"),
      /shop\.test, the domain above, has no DMARC record/,
    ],
    [
      "a broken DMARC record of the domain above",
      () => api.zone.set("TXT _dmarc.shop.test", ["v=DMARC1; p=monitor"]),
      /shop\.test, the domain above, has a broken DMARC record/,
    ],
    [
      "two DMARC records of the domain above",
      () => api.zone.set("TXT _dmarc.shop.test", ["v=DMARC1; p=none", "v=DMARC1; p=reject"]),
      /shop\.test, the domain above, has several DMARC records/,
    ],
    [
      "a BIMI record that shows no logo",
      ({ domain }) => api.zone.set(`TXT default._bimi.${domain}`, ["v=BIMI1; l=http://logo.test/a.svg"]),
      /BIMI record.*Publish/,
    ],
  ])("name %s, with its fix", async (_name, breaks, says) => {
    const made = await published();
    api.zone.set(`A ${made.domain}`, ["192.0.2.5"]);
    api.zone.set(...PARENT);
    breaks(made);
    const { warnings } = (await api.call("POST", `/v1/domains/${made.id}/verify`)).json;
    api.zone.delete(PARENT[0]);
    expect(warnings).toEqual([expect.stringMatching(says)]);
  });

  test("name a DKIM key that is old, with the operation that rotates it", async () => {
    const { id, domain } = await published();
    api.zone.set(`A ${domain}`, ["192.0.2.5"]).set(...PARENT);
    await api.db.write([
      { sql: "UPDATE dkim_keys SET created_at = created_at - ? WHERE domain_id = ?", args: [401 * DAY, id] },
    ]);
    const { warnings } = (await api.call("POST", `/v1/domains/${id}/verify`)).json;
    api.zone.delete(PARENT[0]);
    expect(warnings).toEqual([expect.stringMatching(LINK)]);
  });
});

describe("a missing record", () => {
  test("a missing record has its value as the fix", async () => {
    const { id, dkim } = await published();
    const value = api.zone.get(`CNAME ${dkim}`)?.[0];
    api.zone.delete(`CNAME ${dkim}`);
    expect(await diagnosis(id, "dkim")).toMatchObject({
      status: "missing",
      found: [],
      fix: value,
      problem: `There is no DKIM (CNAME) record at ${dkim}.`,
    });
  });

  test("a missing record is found below the domain a second time, if the DNS host has appended the domain", async () => {
    const { id, domain, dmarc } = await published();
    const value = api.zone.get(`TXT ${dmarc}`) ?? [];
    api.zone.delete(`TXT ${dmarc}`);
    api.zone.set(`TXT ${dmarc}.${domain}`, value);
    const { status, problem } = (await diagnosis(id, "dmarc")) ?? {};
    expect([status, problem]).toEqual([
      "missing",
      `The record is at _dmarc.${domain}.${domain}, because your DNS host appends ${domain} itself. Enter _dmarc as its name.`,
    ]);
  });
});

describe("a wrong record", () => {
  test.each<[string, string[], RegExp, string]>([
    [
      "an SPF record of another service",
      ["google-site-verification=x", "v=spf1 include:_spf.google.com -all"],
      /does not include/,
      `v=spf1 include:_spf.google.com ${OURS} -all`,
    ],
    [
      "two SPF records",
      ["v=spf1 include:_spf.google.com ~all", `v=spf1 ${OURS} ~all`],
      /There are 2 SPF records/,
      `v=spf1 include:_spf.google.com ${OURS} ~all`,
    ],
  ])("%s is to be replaced by one that merges both", async (_, texts, problem, fix) => {
    const { id, spf } = await published();
    api.zone.set(`TXT ${spf}`, texts).set("TXT _spf.google.com", ["v=spf1 ip4:203.0.113.1 ~all"]);
    expect(await diagnosis(id, "spf")).toMatchObject({
      status: "wrong",
      found: texts.filter((text) => text.startsWith("v=spf1")),
      fix,
      problem: expect.stringMatching(problem),
    });
  });

  test("a wrong record shows the target or key that is there", async () => {
    const { id, dkim } = await published();
    api.zone.set(`CNAME ${dkim}`, ["old.dkim.other.example"]);
    expect(await diagnosis(id, "dkim")).toMatchObject({ status: "wrong", found: ["old.dkim.other.example"] });
    api.zone.delete(`CNAME ${dkim}`);
    api.zone.set(`TXT ${dkim}`, ["v=DKIM1; p=AAAA"]);
    expect(await diagnosis(id, "dkim")).toMatchObject({ status: "wrong", found: ["v=DKIM1; p=AAAA"] });
  });

  test("a wrong record is a DKIM name with two keys, of which one is ours", async () => {
    const { id, dkim } = await published();
    api.zone.delete(`CNAME ${dkim}`);
    const { publicKey = "" } = (await listDkimKeys(api.db, api.acme.a.id, id))[0] ?? {};
    api.zone.set(`TXT ${dkim}`, [`v=DKIM1; p=${publicKey}`, "v=DKIM1; p=AAAA"]);
    expect(await diagnosis(id, "dkim")).toMatchObject({
      status: "wrong",
      problem: expect.stringContaining("There are 2 records"),
    });
    api.zone.set(`TXT ${dkim}`, [`v=DKIM1; p=${publicKey}`]);
    expect(await diagnosis(id, "dkim")).toMatchObject({ status: "verified" });
  });

  test.each<[string[], RegExp]>([
    [["v=DMARC1; p=none", "v=DMARC1; p=reject"], /There are 2 DMARC records/],
    [["v=DMARC1; p=maybe"], /no valid policy/],
  ])("a wrong record says what is wrong with the DMARC records %p", async (texts, problem) => {
    const { id, dmarc } = await published();
    api.zone.set(`TXT ${dmarc}`, texts);
    expect(await diagnosis(id, "dmarc")).toMatchObject({
      status: "wrong",
      found: texts,
      problem: expect.stringMatching(problem),
      fix: `v=DMARC1; p=none; rua=mailto:dmarc@${SERVICE_DOMAIN}`,
    });
  });

  test("the diagnosis of a receiving domain covers a wrong MX record, too", async () => {
    const { id, domain } = await published();
    expect(await diagnosis(id, "inbound")).toBeUndefined();
    await api.call("PATCH", `/v1/domains/${id}/receiving`, { body: { enabled: true } });
    api.zone.set(`MX ${domain}`, ["mx.other.example"]);
    expect(await diagnosis(id, "inbound")).toMatchObject({
      type: "MX",
      status: "wrong",
      found: ["10 mx.other.example"],
      fix: `mx.${SERVICE_DOMAIN}`,
    });
  });

  test("a wrong record shows at most ten values, none of them long", async () => {
    const { id, spf } = await published();
    api.zone.set(`TXT ${spf}`, Array(50).fill(`v=spf1 ${"a ".repeat(5000)}`));
    const { found = [] } = (await diagnosis(id, "spf")) ?? {};
    expect(found.map(({ length }) => length)).toEqual(Array(10).fill(1000));
  });
});

describe("a record that spreads", () => {
  test("a record that spreads names the name servers that lack it", async () => {
    const [first, second]: TestZone[] = [new Map(), new Map()];
    api.nameServers.set("ns1.test", first ?? new Map()).set("ns2.test", second ?? new Map());
    const { id, spf } = await published([api.zone, ...api.nameServers.values()]);
    second?.delete(`TXT ${spf}`);
    expect(await diagnosis(id, "spf")).toMatchObject({
      status: "spreading",
      problem: "Not yet at every name server: ns2.test does not have it.",
      fix: `v=spf1 ${OURS} ~all`,
    });
    second?.set(`TXT ${spf}`, first?.get(`TXT ${spf}`) ?? []);
    expect(await diagnosis(id, "spf")).toMatchObject({ status: "verified", problem: null });
    api.zone.delete(`TXT ${spf}`);
    expect(await diagnosis(id, "spf")).toMatchObject({
      status: "spreading",
      problem: expect.stringContaining("caches still hold the old answer"),
    });
    api.nameServers.clear();
  });
});

test("a record whose lookup fails has no fix, because nothing is known", async () => {
  const { id, spf } = await published();
  api.zone.set(`TXT ${spf}`, "failure");
  expect(await diagnosis(id, "spf")).toMatchObject({
    status: "unknown",
    found: [],
    fix: null,
    problem: expect.stringContaining("did not answer"),
  });
});
