import { afterEach, beforeEach, expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { loadConfig } from "../../src/config.ts";
import { seal } from "../../src/core/crypto/secretbox.ts";
import { DAY_MS, HOUR_MS, SECOND_MS } from "../../src/core/time/units.ts";
import { ownPolicy } from "../../src/flows/certificates/own-policy.ts";
import { IN_USE_MS } from "../../src/flows/certificates/order.ts";
import { serviceCertificate } from "../../src/flows/certificates/wanted.ts";
import { CHANGING_FRESH_MS } from "../../src/flows/zone/changing-records.ts";
import { openZone, zoneFile } from "../../src/flows/zone/service-zone.ts";
import type { ZoneRecord } from "../../src/net/zone/records.ts";
import { parseStsPolicy } from "../../src/net/mta-sts-policy.ts";
import {
  insertAcmeAccount,
  insertChallenge,
  updateAcmeAccount,
  wantCertificate,
} from "../../src/store/domains/certificates.ts";
import { watchedDb } from "../support/acme.ts";
import { BOX_KEY } from "../support/api.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { type KeyAndCert, makeCa, makeCert } from "../support/tls.ts";

const ZONE = "mail.test";
const [MX, STS] = [`mx.${ZONE}`, `mta-sts.${ZONE}`];
const SETTINGS = loadConfig({ SERVICE_DOMAIN: ZONE, ACME_EMAIL: "o@example.com", TLS_PORT: "443" });
const DIRECTORY = SETTINGS.acmeDirectory;

const authority = await makeCa();
const issued = await makeCert([ZONE, MX, STS], authority);
const END = Date.parse(new X509Certificate(issued.cert).validTo);

let base: TestDatabase;
let clock: ManualClock;
beforeEach(async () => {
  clock = manualClock(Date.now());
  base = await testDatabase();
  await base.db.write([
    wantCertificate({ ...serviceCertificate(SETTINGS), directory: DIRECTORY }, clock.now()),
  ]);
});
afterEach(() => base.remove());

/** Stores a certificate with a new key, as an order does. */
async function store({ key, cert }: KeyAndCert): Promise<string> {
  const sealed = seal(BOX_KEY, key);
  const now = clock.now();
  await base.db.write([
    {
      sql: `UPDATE certificates SET chain = ?, private_key = ?, issued_at = ?, not_after = ?, served_from = ?,
              order_key = NULL`,
      args: [cert, sealed, now, END, now + IN_USE_MS],
    },
  ]);
  return sealed;
}

/** Returns the records of a zone that was open since before. */
async function opened(settings = SETTINGS) {
  const { changing } = await openZone({ db: base.db, clock }, settings);
  return async (type: string, name: string): Promise<readonly ZoneRecord[]> => {
    clock.advance(CHANGING_FRESH_MS);
    return changing.find((one) => one.type === type && one.name === name)?.find() ?? [];
  };
}

test("a challenge is answered at its name from the second after it was stored, for our hosts only", async () => {
  const at = await opened();
  const name = `_acme-challenge.${MX}`;
  expect(await at("TXT", name)).toEqual([]);
  await base.db.write([insertChallenge(ZONE, name, "proof", clock.now())]);
  await base.db.write([insertChallenge(ZONE, `_acme-challenge.other.${ZONE}`, "proof", clock.now())]);
  expect(await at("TXT", name)).toEqual([{ type: "TXT", name, ttl: 30, data: "proof" }]);
  expect(await at("TXT", `_acme-challenge.other.${ZONE}`)).toEqual([]);
});

test("any number of queries for a challenge cost one read of the database a second", async () => {
  let reads = 0;
  const counting = watchedDb(base.db, () => void reads++);
  const { changing } = await openZone({ db: counting, clock }, SETTINGS);
  const challenge = changing.find(({ name }) => name === `_acme-challenge.${MX}`);
  reads = 0;
  await Promise.all(Array.from({ length: 100 }, () => challenge?.find()));
  expect(reads).toBe(1);
  clock.advance(CHANGING_FRESH_MS);
  await challenge?.find();
  expect(reads).toBe(2);
});

test("CAA lets only the CA issue that we have an account at", async () => {
  const at = await opened();
  expect(await at("CAA", ZONE)).toEqual([]);
  await base.db.write([
    insertAcmeAccount(DIRECTORY, "sealed", "o@example.com", 1),
    updateAcmeAccount({
      directory: DIRECTORY,
      sealedKey: "sealed",
      url: "u",
      contact: "o@example.com",
      caaNames: ["ca.test", "ca.example"],
    }),
  ]);
  expect((await at("CAA", ZONE)).map(({ data }) => data)).toEqual(
    ["ca.test", "ca.example"].map((value) => ({ flags: 0, tag: "issue", value })),
  );
  expect(await (await opened({ ...SETTINGS, acmeEmail: null }))("CAA", ZONE)).toEqual([]);
});

test("there is no TLSA record: the zone is not signed, so senders must not use one", async () => {
  const at = await opened();
  await store(issued);
  clock.advance(IN_USE_MS);
  expect(await at("TLSA" as "TXT", `_25._tcp.${MX}`)).toEqual([]);
});

test("an alias of the host of links lets our CA issue, whatever CAA records its owner has", async () => {
  const at = await opened({ ...SETTINGS, publicIps: ["192.0.2.1"], delivery: "mx" });
  await base.db.write([
    insertAcmeAccount(DIRECTORY, "sealed", "o@example.com", 1),
    updateAcmeAccount({
      directory: DIRECTORY,
      sealedKey: "sealed",
      url: "u",
      contact: "o@example.com",
      caaNames: ["ca.test"],
    }),
  ]);
  expect((await at("CAA", `links.${ZONE}`)).map(({ data }) => data)).toEqual([
    { flags: 0, tag: "issue", value: "ca.test" },
  ]);
});

test("MTA-STS is announced while its policy is served, and no sender keeps the policy longer than the certificate lasts", async () => {
  const at = await opened();
  const name = `_mta-sts.${ZONE}`;
  const policy = async () => (await ownPolicy({ db: base.db, clock }, SETTINGS))?.text ?? null;
  expect([await at("TXT", name), await policy()]).toEqual([[], null]);
  await store(issued);
  clock.advance(IN_USE_MS);
  const [announced] = await at("TXT", name);
  expect(String(announced?.data)).toMatch(/^v=STSv1; id=[0-9a-f]{16};$/);
  const read = async () => parseStsPolicy(Buffer.from((await policy()) ?? ""));
  expect(await read()).toMatchObject({ mode: "enforce", mx: [MX], maxAgeSeconds: 7 * 86_400 });
  clock.advance(END - clock.now() - HOUR_MS);
  expect((await read())?.maxAgeSeconds).toBe(3600);
  clock.advance(HOUR_MS - SECOND_MS);
  expect(await at("TXT", name)).toEqual([]);
  expect(await policy()).toBeNull();
});

test.each([
  ["without TLS_PORT", { tlsPort: null }, issued],
  ["if the certificate lacks the mail host", {}, await makeCert([ZONE, STS], authority)],
  ["if the certificate lacks the policy's host", {}, await makeCert([ZONE, MX], authority)],
  ["if the certificate signs itself", {}, await makeCert([ZONE, MX, STS])],
])("MTA-STS is not announced %s", async (_when, changes, certificate) => {
  await store(certificate);
  const at = await opened({ ...SETTINGS, ...changes });
  clock.advance(DAY_MS);
  expect(await at("TXT", `_mta-sts.${ZONE}`)).toEqual([]);
});

test("the printed zone has the records of the certificate as they are now", async () => {
  await store(issued);
  clock.advance(IN_USE_MS);
  let printed = "";
  for await (const lines of zoneFile({ db: base.db, clock }, SETTINGS)) printed += `${lines}\n`;
  expect(printed).not.toContain("TLSA");
  expect(printed).toMatch(/^_mta-sts\.mail\.test\. 1800 IN TXT "v=STSv1; id=[0-9a-f]{16};"$/m);
  expect(printed).toContain(`_smtp._tls.${ZONE}. 3600 IN TXT "v=TLSRPTv1; rua=mailto:tls-reports@${ZONE}"`);
});
