import { afterEach, beforeEach, expect, test } from "bun:test";
import { DAY_MS, MINUTE_MS } from "../../src/core/time/units.ts";
import { openRotation, OLD_KEY_MS, ROTATIONS_PER_LOOK } from "../../src/flows/domains/rotate-old.ts";
import { recheckDue } from "../../src/flows/domains/recheck.ts";
import { delegatedRecords } from "../../src/flows/zone/delegated-zone.ts";
import { RETIRED_KEY_MS } from "../../src/flows/domains/verify.ts";
import { listDkimKeys } from "../../src/store/domains/dkim-keys.ts";
import { getDomain } from "../../src/store/domains/domains.ts";
import { SERVICE_DOMAIN, type TestApi, testApi } from "../support/api.ts";

let api: TestApi;
beforeEach(async () => {
  api = await testApi();
});
afterEach(() => api.close());

/** Registers a domain whose zone we hold, and which the DNS delegates to us unless `seen` is false. Returns its id. */
async function delegated(domain: string, seen = true): Promise<string> {
  const { json } = await api.call("POST", "/v1/domains", { body: { domain, delegated: true } });
  if (seen) api.zone.set(`NS ${domain}`, [json.delegation.records[0].value]);
  await api.call("POST", `/v1/domains/${json.id}/verify`);
  return json.id;
}

const selectors = async (id: string) => {
  const keys = await listDkimKeys(api.db, api.acme.a.id, id);
  return keys.map(({ selector, status }) => `${selector} ${status}`).sort();
};

/** Publishes the keys of a domain in the DNS, as its zone has them. */
async function spread(id: string): Promise<void> {
  const domain = await getDomain(api.db, api.acme.a.id, id);
  if (domain === null) throw new Error("no such domain");
  for (const record of await delegatedRecords(api, SERVICE_DOMAIN, domain))
    if (record.type === "TXT") api.zone.set(`TXT ${record.name}`, [record.data]);
}

test("the key of a delegated domain is replaced after 90 days, signs once it resolves, and the old one stays published for a week", async () => {
  const id = await delegated("news.example.com");
  const turn = openRotation(api.domains);
  api.clock.advance(OLD_KEY_MS);
  await turn();
  expect(await selectors(id)).toEqual(["pr1 active"]);
  api.clock.advance(MINUTE_MS);
  await turn();
  expect(await selectors(id)).toEqual(["pr1 active", "pr2 pending"]);
  await recheckDue(api.domains, 10);
  expect(await selectors(id)).toEqual(["pr1 active", "pr2 pending"]);
  await spread(id);
  api.clock.advance(5 * MINUTE_MS);
  await recheckDue(api.domains, 10);
  expect(await selectors(id)).toEqual(["pr1 retired", "pr2 active"]);
  const published = async () => {
    const domain = await getDomain(api.db, api.acme.a.id, id);
    const records = domain === null ? [] : await delegatedRecords(api, SERVICE_DOMAIN, domain);
    return records.filter(({ name }) => name.includes("._domainkey.")).length;
  };
  api.clock.advance(RETIRED_KEY_MS - 1);
  expect(await published()).toBe(2);
  api.clock.advance(1);
  expect(await published()).toBe(1);
  api.clock.advance(OLD_KEY_MS - RETIRED_KEY_MS);
  await turn();
  expect(await selectors(id)).toEqual(["pr1 pending", "pr2 active"]);
});

test("a domain whose records are published by hand, or whose delegation is not seen, keeps its key", async () => {
  const unseen = await delegated("unseen.example.com", false);
  const { json } = await api.call("POST", "/v1/domains", { body: { domain: "hand.example.com" } });
  for (const { type, name, value } of json.records) api.zone.set(`${type} ${name}`, [value]);
  const { json: seen } = await api.call("POST", `/v1/domains/${json.id}/verify`);
  expect(seen.status).toBe("verified");
  api.clock.advance(OLD_KEY_MS + DAY_MS);
  await openRotation(api.domains)();
  for (const id of [unseen, json.id]) expect(await selectors(id)).toEqual(["pr1 active"]);
});

test("two processes make one key, and one look replaces a limited number", async () => {
  const ids: string[] = [];
  for (let at = 0; at < ROTATIONS_PER_LOOK + 1; at++) ids.push(await delegated(`d${at}.example.com`));
  api.clock.advance(OLD_KEY_MS + DAY_MS);
  await Promise.all([openRotation(api.domains)(), openRotation(api.domains)()]);
  const counts = (await Promise.all(ids.map(selectors))).map(({ length }) => length);
  expect(counts.filter((count) => count === 2)).toHaveLength(ROTATIONS_PER_LOOK);
  expect(counts.filter((count) => count === 1)).toHaveLength(1);
});
