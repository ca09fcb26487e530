import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { unseal } from "../../src/core/crypto/secretbox.ts";
import { BOX_KEY, SERVICE_DOMAIN, type TestApi, TEST_KEY, testApi } from "../support/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await testApi();
});
afterAll(() => api.close());

let made = 0;
const newName = () => `d${++made}.mail.test`;
const create = (domain: unknown = newName(), key?: string) =>
  api.call("POST", "/v1/domains", key === undefined ? { body: { domain } } : { body: { domain }, key });
const verify = (id: string) => api.call("POST", `/v1/domains/${id}/verify`);
const receiving = (id: string, enabled: boolean, key?: string) =>
  api.call("PATCH", `/v1/domains/${id}/receiving`, {
    body: { enabled },
    ...(key === undefined ? {} : { key }),
  });

interface ShownRecord {
  type: string;
  name: string;
  value: string;
  purpose: string;
  verified: boolean;
}

/** Publishes the records that the API returns. */
function publish(records: ShownRecord[]): void {
  for (const { type, name, value } of records) api.zone.set(`${type} ${name}`, [value]);
}

/** A domain of the key's project, published and verified. */
async function verified(name = newName(), key?: string): Promise<string> {
  const { json } = await create(name, key);
  publish(json.records);
  const called = await api.call("POST", `/v1/domains/${json.id}/verify`, key === undefined ? {} : { key });
  expect(called.json.status).toBe("verified");
  return json.id;
}

describe("POST /v1/domains", () => {
  test("registers a pending domain with exactly three records to publish", async () => {
    const { status, json } = await create("News.Example.COM");
    expect(status).toBe(201);
    expect(json).toMatchObject({ domain: "news.example.com", status: "pending", receiving: false });
    expect(json.records).toEqual([
      {
        type: "CNAME",
        name: "pr1._domainkey.news.example.com",
        value: expect.stringMatching(/^[0-9a-z]{26}\.dkim\.post\.example$/),
        purpose: "dkim",
        verified: false,
      },
      {
        type: "TXT",
        name: "news.example.com",
        value: `v=spf1 include:spf.${SERVICE_DOMAIN} ~all`,
        purpose: "spf",
        verified: false,
      },
      {
        type: "TXT",
        name: "_dmarc.news.example.com",
        value: `v=DMARC1; p=none; rua=mailto:dmarc@${SERVICE_DOMAIN}`,
        purpose: "dmarc",
        verified: false,
      },
    ]);
    expect(json.authHealth).toEqual({ dkim: "pending", spf: "pending", dmarc: "pending" });
    expect((await api.call("GET", `/v1/domains/${json.id}`)).json).toEqual(json);
  });

  test("keeps the private key sealed", async () => {
    const { json } = await create();
    const row = await api.db.first<{ private_key: string; status: string }>(
      "SELECT private_key, status FROM dkim_keys WHERE domain_id = ?",
      [json.id],
    );
    expect(row?.status).toBe("active");
    expect(row?.private_key).not.toContain("PRIVATE KEY");
    expect(unseal(BOX_KEY, row?.private_key ?? "")).toBe(TEST_KEY.privateKeyPem);
  });

  const taken: [string, string][] = [
    ["a domain", "plain.test"],
    ["with a final dot", "dotted.test."],
    ["in unicode, as A-labels", "bücher.test"],
    ["below a public suffix of a company", "me.github.io"],
    ["of 238 octets", `${`${"a".repeat(60)}.`.repeat(3)}${"b".repeat(50)}.test`],
    ["with the service domain in its name only", "post.example.com"],
    ["a sibling of the service domain", "notpost.example"],
  ];
  test.each(taken)("accepts %s", async (_name, domain) => {
    expect((await create(domain)).status).toBe(201);
  });

  test("shows an international name in A-labels", async () => {
    expect((await create("münchen.test")).json.domain).toBe("xn--mnchen-3ya.test");
  });

  const refused: [string, unknown][] = [
    ["no text", null],
    ["a number", 5],
    ["an empty one", ""],
    ["a single label", "localhost"],
    ["a top-level domain", "com"],
    ["a public suffix", "co.uk"],
    ["a public suffix of a company", "github.io"],
    ["the service domain", SERVICE_DOMAIN],
    ["a name below it", `x.${SERVICE_DOMAIN}`],
    ["the same in another case", `X.${SERVICE_DOMAIN.toUpperCase()}`],
    ["an IPv4 address", "192.0.2.1"],
    ["an IPv6 address", "[2001:db8::1]"],
    ["a URL", "https://example.com"],
    ["an email address", "me@example.com"],
    ["an underscore", "_dmarc.example.com"],
    ["a label of 64 octets", `${"a".repeat(64)}.test`],
    ["an empty label", "a..test"],
    ["a dash in front", "-a.test"],
    ["a line break", "a.test\r\nX: y"],
    ["a NUL", "a\u0000.test"],
    ["239 octets", `${`${"a".repeat(60)}.`.repeat(3)}${"b".repeat(51)}.test`],
  ];
  test.each(refused)("refuses %s", async (_name, domain) => {
    const called = await create(domain);
    expect([called.status, called.json.error.param]).toEqual([422, "domain"]);
  });

  test("a name the account has is 409, in any of its projects; another account may have it too", async () => {
    const name = newName();
    expect((await create(name)).status).toBe(201);
    for (const key of [api.acme.a.key, api.acme.b.key]) {
      const called = await create(name.toUpperCase(), key);
      expect([called.status, called.json.error.code]).toEqual([409, "duplicate"]);
    }
    expect((await create(name, api.other.a.key)).status).toBe(201);
  });

  test("a domain registered again gets a new DKIM token", async () => {
    const name = newName();
    const first = (await create(name)).json;
    await api.call("DELETE", `/v1/domains/${first.id}`);
    const second = (await create(name)).json;
    expect(second.records[0].value).not.toBe(first.records[0].value);
  });
});

describe("POST /v1/domains/{id}/verify", () => {
  test("verifies a domain once all three records resolve, and reports each before that", async () => {
    const { json } = await create();
    const path = `/v1/domains/${json.id}`;
    for (let found = 0; found < 3; found++) {
      const called = await verify(json.id);
      expect(called.status).toBe(200);
      expect(called.json.status).toBe("pending");
      const flags = called.json.records.map((record: ShownRecord) => record.verified);
      expect(flags).toEqual([0, 1, 2].map((at) => at < found));
      publish(json.records.slice(0, found + 1));
    }
    const called = await verify(json.id);
    expect(called.json.status).toBe("verified");
    expect(called.json.records.every((record: ShownRecord) => record.verified)).toBe(true);
    expect(called.json.authHealth).toEqual({ dkim: "verified", spf: "verified", dmarc: "verified" });
    expect(called.json.verifiedAt).toBe(new Date(api.clock.now()).toISOString());
    expect(called.json).toMatchObject((await api.call("GET", path)).json);
  });

  test("reading does not query the DNS", async () => {
    const { json } = await create();
    publish(json.records);
    expect((await api.call("GET", `/v1/domains/${json.id}`)).json.status).toBe("pending");
  });

  test("a lost record shows as failing while the domain stays verified", async () => {
    const id = await verified();
    const { json } = await api.call("GET", `/v1/domains/${id}`);
    api.zone.delete(`TXT ${json.domain}`);
    const called = await verify(id);
    expect([called.json.status, called.json.authHealth]).toEqual([
      "verified",
      { dkim: "verified", spf: "failing", dmarc: "verified" },
    ]);
  });

  test("a body of {} counts as no body", async () => {
    const { json } = await create();
    expect((await api.call("POST", `/v1/domains/${json.id}/verify`, { body: {} })).status).toBe(200);
  });
});

describe("receiving", () => {
  test("receiving is refused before the domain is verified", async () => {
    const { json } = await create();
    const called = await receiving(json.id, true);
    expect([called.status, called.json.error.code]).toEqual([409, "invalid_state"]);
    expect((await receiving(json.id, false)).status).toBe(200);
  });

  test("receiving gives the MX record, which becomes verified once it resolves", async () => {
    const id = await verified();
    const called = await receiving(id, true);
    const { domain } = (await api.call("GET", `/v1/domains/${id}`)).json;
    const record = {
      type: "MX",
      name: domain,
      value: `mx.${SERVICE_DOMAIN}`,
      priority: 10,
      purpose: "inbound",
      verified: false,
    };
    expect(called.json).toEqual({ enabled: true, records: [record] });
    publish([record]);
    await verify(id);
    const read = await api.call("GET", `/v1/domains/${id}/receiving`);
    expect(read.json).toEqual({ enabled: true, records: [{ ...record, verified: true }] });
    expect((await receiving(id, false)).json.enabled).toBe(false);
  });

  test("answers the same whether or not it was changed", async () => {
    const id = await verified();
    expect((await receiving(id, true)).json).toEqual((await receiving(id, true)).json);
  });

  test("receiving for a name is enabled for one project only, because mail has one owner", async () => {
    const name = newName();
    const mine = await verified(name);
    const theirs = await verified(name, api.other.a.key);
    expect((await receiving(mine, true)).status).toBe(200);
    const called = await receiving(theirs, true, api.other.a.key);
    expect([called.status, called.json.error.type]).toEqual([409, "conflict"]);
    await receiving(mine, false);
    expect((await receiving(theirs, true, api.other.a.key)).status).toBe(200);
  });

  test.each([[{}], [{ enabled: "yes" }], [{ enabled: null }]])("receiving refuses %p", async (body) => {
    const id = await verified();
    const called = await api.call("PATCH", `/v1/domains/${id}/receiving`, { body });
    expect([called.status, called.json.error.param]).toEqual([422, "enabled"]);
  });
});

describe("POST /v1/domains/{id}/rotate-dkim", () => {
  const rotate = (id: string) => api.call("POST", `/v1/domains/${id}/rotate-dkim`);
  const names = (records: ShownRecord[]) =>
    records
      .filter(({ purpose }) => purpose === "dkim")
      .map(({ name, verified: seen }) => [name.split(".")[0], seen]);

  test("moves signing to the other selector once it resolves, and back without a DNS change", async () => {
    const id = await verified();
    const first = await rotate(id);
    expect([first.status, names(first.json.records)]).toEqual([
      200,
      [
        ["pr1", true],
        ["pr2", false],
      ],
    ]);
    expect(names((await verify(id)).json.records)).toHaveLength(2);
    publish(first.json.records);
    expect(names((await verify(id)).json.records)).toEqual([["pr2", true]]);
    const busy = await rotate(id);
    expect([busy.status, busy.json.error.code]).toEqual([409, "invalid_state"]);
    api.clock.advance(7 * 24 * 3_600_000);
    const third = await rotate(id);
    expect(third.status).toBe(200);
    const values = (records: ShownRecord[]) =>
      records.filter(({ purpose }) => purpose === "dkim").map(({ value }) => value);
    expect(values(third.json.records).sort()).toEqual(values(first.json.records).sort());
    expect(names((await verify(id)).json.records)).toEqual([["pr1", true]]);
  });

  test("is 409 while the last one waits for its record, also for two at once", async () => {
    const id = await verified();
    const both = await Promise.all([rotate(id), rotate(id)]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect((await rotate(id)).status).toBe(409);
  });
});

describe("a domain", () => {
  test("a domain of another project or account is 404", async () => {
    const { json } = await create();
    for (const key of [api.acme.b.key, api.other.a.key]) {
      for (const [method, path, body] of [
        ["GET", "", undefined],
        ["DELETE", "", undefined],
        ["POST", "/verify", undefined],
        ["POST", "/rotate-dkim", undefined],
        ["GET", "/receiving", undefined],
        ["PATCH", "/receiving", { enabled: true }],
      ] as const) {
        const called = await api.call(method, `/v1/domains/${json.id}${path}`, { key, body });
        expect([method, path, called.status]).toEqual([method, path, 404]);
      }
      expect((await api.call("GET", "/v1/domains?limit=100", { key })).text).not.toContain(json.id);
    }
    expect((await api.call("GET", `/v1/domains/${json.id}`)).json).toEqual(json);
  });

  test("a domain is listed newest first with its records", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.unshift((await create()).json.id);
    const first = await api.call("GET", "/v1/domains?limit=2");
    const second = await api.call("GET", `/v1/domains?limit=1&cursor=${first.json.nextCursor}`);
    const shown: { id: string; records: unknown[] }[] = [...first.json.data, ...second.json.data];
    expect(shown.map(({ id }) => id)).toEqual(ids);
    expect(shown.every(({ records }) => records.length === 3)).toBe(true);
  });

  test("a domain with inboxes cannot be deleted; without inboxes it can, with its keys", async () => {
    const { json } = await create();
    const inbox = await api.call("POST", "/v1/inboxes", { body: { localPart: "in", domainId: json.id } });
    const path = `/v1/domains/${json.id}`;
    const refused = await api.call("DELETE", path);
    expect([refused.status, refused.json.error.type]).toEqual([409, "conflict"]);
    await api.call("DELETE", `/v1/inboxes/${inbox.json.id}`);
    expect((await api.call("DELETE", path)).status).toBe(204);
    expect((await api.call("GET", path)).status).toBe(404);
    expect(await api.db.all("SELECT token FROM dkim_keys WHERE domain_id = ?", [json.id])).toEqual([]);
  });
});
