import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { openDb } from "../../src/store/engine/client.ts";
import { publish, startDns, type TestDns } from "../support/dns.ts";
import { newFolder, removeFolder } from "../support/folder.ts";
import { deliverTo } from "../support/mail-in.ts";
import { freePort } from "../support/redis.ts";
import { callRole, type RoleProcess, startRole } from "../support/role-process.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(90_000);

const KEY = "test-root-key-0123456789-0123456789";
const METRICS = "test-metrics-token-0123456789";
const LETTERS = 40;

let folder: string;
let dns: TestDns;
let env: Record<string, string>;
let started: RoleProcess[];

async function start(more: Record<string, string>): Promise<RoleProcess> {
  const role = await startRole({ ...env, ...more });
  started.push(role);
  return role;
}

beforeEach(async () => {
  folder = newFolder("shared-port");
  dns = await startDns();
  started = [];
  env = {
    DATA_DIR: folder,
    ROOT_API_KEY: KEY,
    DELIVERY: "capture",
    DNS_SERVERS: dns.address,
    SMTP_PORT: String(freePort()),
    SMTP_PORT_SHARED: "1",
    METRICS_TOKEN: METRICS,
  };
  const api = await start({ ROLES: "api" });
  const { body: domain } = await callRole(api, KEY, "POST", "/v1/domains", { domain: "in.test" });
  publish(dns, domain.records);
  await callRole(api, KEY, "POST", `/v1/domains/${domain.id}/verify`, {});
  const path = `/v1/domains/${domain.id}/receiving`;
  publish(dns, (await callRole(api, KEY, "PATCH", path, { enabled: true })).body.records);
  await callRole(api, KEY, "POST", "/v1/inboxes", { address: "desk@in.test" });
});
afterEach(async () => {
  await Promise.all(started.map((role) => role.kill()));
  dns.stop();
  removeFolder(folder);
});

const letter = (subject: string) => ({
  to: "desk@in.test",
  headers: [`Subject: ${subject}`, `Message-ID: <${subject}@client.test>`],
});

/** Sends letters at once, each in a separate session. Returns how many were taken. */
async function sendAll(name: string): Promise<number> {
  const letters = Array.from({ length: LETTERS }, (_, at) => letter(`${name}-${at}`));
  const replies = await Promise.all(letters.map((one) => deliverTo(Number(env.SMTP_PORT), one)));
  return replies.filter((reply) => reply.startsWith("250 ")).length;
}

async function stored(): Promise<{ messages: number; threads: number } | null> {
  const db = await openDb(systemClock, {
    url: `file:${folder}/postrider.db`,
    authToken: null,
    syncUrl: null,
  });
  const row = await db.first<{ messages: number; threads: number }>(
    "SELECT COUNT(*) AS messages, COUNT(DISTINCT thread_id) AS threads FROM messages",
  );
  await db.close();
  return row;
}

/** Messages that a process has stored. */
async function takenBy(role: RoleProcess): Promise<number> {
  const response = await fetch(`${role.url}/metrics`, { headers: { authorization: `Bearer ${METRICS}` } });
  expect(response.status).toBe(200);
  const line = /^postrider_inbound_messages_total\{[^}]*taken[^}]*\} (\d+)$/m.exec(await response.text());
  return Number(line?.[1] ?? 0);
}

test("two processes on one port take mail for one database, and one goes on alone", async () => {
  const roles = [await start({ ROLES: "smtp" }), await start({ ROLES: "smtp" })];
  expect(await sendAll("both")).toBe(LETTERS);
  const shares = await Promise.all(roles.map(takenBy));
  // The system picks a process for each connection, so one gets none of forty only once in 2^39 runs.
  expect(Math.min(...shares)).toBeGreaterThan(0);
  expect(shares.reduce((sum, share) => sum + share, 0)).toBe(LETTERS);
  // A sender that repeats its letters may reach the other process.
  expect(await sendAll("both")).toBe(LETTERS);
  expect(await stored()).toEqual({ messages: LETTERS, threads: LETTERS });
  expect(await roles[0]?.terminate()).toBe(0);
  expect(await sendAll("one")).toBe(LETTERS);
  expect(await stored()).toEqual({ messages: 2 * LETTERS, threads: 2 * LETTERS });
});

test("without the setting, a second process on the port does not start", async () => {
  await start({ ROLES: "smtp", SMTP_PORT_SHARED: "0" });
  const second = await start({ ROLES: "smtp", SMTP_PORT_SHARED: "0" }).catch((error: unknown) => error);
  expect(String(second)).toContain("EADDRINUSE");
});
