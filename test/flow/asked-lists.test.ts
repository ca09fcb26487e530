import { afterEach, beforeEach, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { askedListsCheck, LISTS_STALE_MS } from "../../src/flows/health/asked-lists.ts";
import { LISTS_PAUSE_MS, watchBlockLists } from "../../src/flows/notices/listed.ts";
import { createResolver } from "../../src/net/dns/resolver.ts";
import { testDatabase } from "../support/database.ts";
import { startDns, type TestDns } from "../support/dns.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";

const IP = "203.0.113.5";
/** The lists with the entry that each always shows, and the answer for it. */
const TEST_ENTRIES: [string, string][] = [
  ...[
    "zen.spamhaus.org",
    "b.barracudacentral.org",
    "bl.spamcop.net",
    "psbl.surriel.com",
    "bl.mailspike.net",
  ].map((zone): [string, string] => [`2.0.0.127.${zone}`, "127.0.0.2"]),
  ["dbltest.com.dbl.spamhaus.org", "127.0.1.2"],
  ["surbl-org-permanent-test-point.com.multi.surbl.org", "127.0.0.2"],
  ["test.uribl.com.multi.uribl.com", "127.0.0.2"],
];

let clock: ManualClock;
let dns: TestDns;
let database: Awaited<ReturnType<typeof testDatabase>>;
let turn: () => Promise<void>;
beforeEach(async () => {
  clock = manualClock();
  database = await testDatabase();
  dns = await startDns(...TEST_ENTRIES.map(([name, data]) => ({ name, type: "A", data }) as const));
  const resolver = createResolver({ clock: systemClock }, { servers: [{ ip: dns.ip, port: dns.port }] });
  const { db } = database;
  turn = watchBlockLists({ db, clock, resolver, addresses: [IP], domains: ["mail.test"] });
});
afterEach(async () => {
  dns.stop();
  await database.remove();
});

const line = async (addresses = [IP]) => askedListsCheck({ clock, db: () => database.db, addresses }).run();

/** Lets the service ask: first an hour after its first start. */
async function asked(): Promise<void> {
  await turn();
  clock.advance(LISTS_PAUSE_MS);
  await turn();
}

test("block lists that were not asked yet, or about other addresses, are unknown", async () => {
  const unknown = { status: "ok" as const, message: expect.stringMatching(/^Unknown/) };
  expect([await line([]), await line()]).toEqual([unknown, unknown]);
  await asked();
  expect(await line(["203.0.113.6"])).toEqual(unknown);
});

test("block lists that have none of ours are clean, and unknown when the answer is too old", async () => {
  await asked();
  const at = new Date(clock.now()).toISOString();
  const clean = { status: "ok", message: `At ${at}, none of 8 block lists had our addresses and names.` };
  expect(await line()).toMatchObject(clean);
  clock.advance(LISTS_STALE_MS);
  expect(await line()).toMatchObject(clean);
  clock.advance(1);
  expect(await line()).toMatchObject({
    status: "warn",
    message: `Unknown: the service last asked block lists at ${at}.`,
  });
});

test("a block list that refuses the resolver of many is unknown, never clean", async () => {
  dns.remove("2.0.0.127.zen.spamhaus.org");
  dns.add({ name: "2.0.0.127.zen.spamhaus.org", type: "A", data: "127.255.255.254" });
  await asked();
  expect(await line()).toMatchObject({
    status: "warn",
    message: expect.stringMatching(/^Unknown: .*1 of 8 block lists did not answer: zen\.spamhaus\.org\./),
    fix: expect.stringContaining("DNS_SERVERS"),
  });
});

test("block lists that have our address and name are named, with the pages that take them off", async () => {
  dns.add({ name: "5.113.0.203.zen.spamhaus.org", type: "A", data: "127.0.0.3" });
  dns.add({ name: "mail.test.multi.surbl.org", type: "A", data: "127.0.0.8" });
  await asked();
  expect(await line()).toMatchObject({
    status: "fail",
    message: `Spamhaus ZEN lists ${IP}. SURBL lists mail.test.`,
    fix: expect.stringMatching(/check\.spamhaus\.org.*surbl\.org/),
  });
});
