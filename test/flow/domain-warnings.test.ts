import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { dkimTarget } from "../../src/core/own-names.ts";
import { publishedKeys } from "../../src/store/domains/dkim-keys.ts";
import { publish } from "../support/dns.ts";
import { CUSTOMER, CUSTOMER_SOA, publishKeys } from "../support/healthy.ts";
import { freePort } from "../support/redis.ts";
import { SERVICE_DOMAIN, startService, type TestService, verifiedDomain } from "../support/service.ts";

// Warnings on the page of a domain about its mail as receivers see it.

setDefaultTimeout(60_000);
const LINKS = `links.${CUSTOMER}`;
let service: TestService;
let id: string;

beforeAll(async () => {
  service = await startService({
    DELIVERY: "mx",
    PUBLIC_IPS: "127.0.0.1",
    // Own hosts of links need a CA, which does not answer here.
    ACME_EMAIL: "operator@example.com",
    ACME_DIRECTORY: `https://127.0.0.1:${freePort()}/directory`,
    TLS_PORT: "0",
    PUBLIC_URL: `https://api.${SERVICE_DOMAIN}`,
  });
  service.dns.add({ name: CUSTOMER, type: "A", data: "192.0.2.5" }, CUSTOMER_SOA);
  id = await verifiedDomain(service, CUSTOMER);
  await publishKeys(service);
});
afterAll(() => service.stop());

const checked = async () => (await service.call("POST", `/v1/domains/${id}/verify`)).body;

test("a domain whose mail passes as receivers check it has no warning", async () => {
  expect((await checked()).warnings).toEqual([]);
});

test("a domain whose DKIM alias leads to no key is told that its mail does not pass, until the key is there", async () => {
  for (const { token } of await publishedKeys(service.app.db, Date.now(), "", 10))
    service.dns.remove(dkimTarget(token, SERVICE_DOMAIN));
  const { status, warnings } = await checked();
  expect([status, warnings]).toEqual([
    "verified",
    [
      expect.stringMatching(
        /A message of this domain does not pass as receivers check it: dkim=\w+ \(pr1\).* Publish the records that GET \/v1\/domains\/dom_/,
      ),
    ],
  ]);
  await publishKeys(service);
  expect((await checked()).warnings).toEqual([]);
});

test("a domain in no zone with an SOA record is told so", async () => {
  const { records } = (await service.call("GET", `/v1/domains/${id}`)).body;
  service.dns.remove(CUSTOMER);
  service.dns.add({ name: CUSTOMER, type: "A", data: "192.0.2.5" });
  publish(
    service.dns,
    records.filter(({ purpose }: { purpose: string }) => purpose === "spf"),
  );
  expect((await checked()).warnings).toEqual([
    expect.stringMatching(/in no zone with an SOA record.*Check the delegation at the registrar/),
  ]);
  service.dns.add(CUSTOMER_SOA);
  expect((await checked()).warnings).toEqual([]);
});

test("a domain whose own host of links does not answer is told so once the host has a certificate, and no address but ours is asked", async () => {
  const { recommended } = (await service.call("GET", `/v1/domains/${id}`)).body;
  publish(service.dns, recommended);
  const leadsTo = (data: string) => {
    service.dns.remove(`links.${SERVICE_DOMAIN}`);
    service.dns.add({ name: `links.${SERVICE_DOMAIN}`, type: "A", data });
  };
  leadsTo("127.0.0.1");
  expect((await checked()).warnings).toEqual([]);
  await service.app.db.write([
    {
      sql: `INSERT INTO certificates (id, domain_id, directory, names, chain, private_key, issued_at, not_after, served_from, renew_at, due_at)
        VALUES (?1, ?1, 'x', ?2, 'x', 'x', 0, ?3, 0, ?3, ?3)
        ON CONFLICT (id) DO UPDATE SET chain = 'x', private_key = 'x', issued_at = 0, not_after = ?3, served_from = 0`,
      args: [id, JSON.stringify([LINKS]), Date.now() * 2],
    },
  ]);
  const warned = (reason: string) => [
    expect.stringContaining(`Links to unsubscribe at https://${LINKS} cannot be reached: ${reason}`),
  ];
  expect((await checked()).warnings).toEqual(warned(""));
  leadsTo("127.0.0.2");
  expect((await checked()).warnings).toEqual(warned(`${LINKS} has no public address`));
});
