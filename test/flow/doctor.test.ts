import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { constants, generateKeyPairSync } from "node:crypto";
import { openSync, writeFileSync, writeSync, closeSync } from "node:fs";
import { join } from "node:path";
import { generate } from "selfsigned";
import { systemClock } from "../../src/clock.ts";
import { type Config, loadConfig } from "../../src/config.ts";
import { type HealthLine, runHealth } from "../../src/flows/health/check.ts";
import { copyDatabase } from "../../src/store/embedded/connection.ts";
import { type Db, openDb } from "../../src/store/engine/client.ts";
import { insertRecipients } from "../../src/store/messages/recipients.ts";
import { dkimTarget } from "../../src/core/own-names.ts";
import { dkimRecord } from "../../src/mail/auth/dkim.ts";
import { toReverseName } from "../../src/net/dns/lookups.ts";
import { textStrings } from "../../src/net/zone/records.ts";
import { publishedKeys } from "../../src/store/domains/dkim-keys.ts";
import { doctorChecks } from "../../src/wiring/doctor.ts";
import { newFolder } from "../support/folder.ts";
import {
  CUSTOMER,
  CUSTOMER_SOA,
  type Healthy,
  PUBLIC_IP,
  publishZone,
  REVERSE_NAME,
  startHealthy,
  ZONE,
} from "../support/healthy.ts";
import { type MxOptions, startMx } from "../support/mx.ts";
import { freePort } from "../support/redis.ts";
import { verifiedDomain } from "../support/service.ts";
import { signZone, tlsaRecord } from "../support/sts-host.ts";
import { makeCa, makeCert } from "../support/tls.ts";

const START_MS = 180_000;
setDefaultTimeout(START_MS);
const DAY_MS = 86_400_000;
let healthy: Healthy;
let folder: string;
const closing: (() => unknown)[] = [];

beforeAll(async () => {
  healthy = await startHealthy();
  folder = newFolder("doctor");
}, START_MS);
afterAll(async () => {
  for (const close of closing) await close();
  await healthy.stop();
});

interface Look {
  config?: Config;
  db?: Db;
  egress?: { host: string; port: number };
  clockUrl?: URL;
  lists?: boolean;
}

async function look({ config, db, egress, clockUrl, lists }: Look = {}): Promise<Map<string, HealthLine>> {
  const parts = {
    config: config ?? healthy.config,
    clock: systemClock,
    db: () => db ?? healthy.service.app.db,
    ca: healthy.ca,
  };
  const options = {
    egress: egress ?? { host: "127.0.0.1", port: healthy.greeter.port },
    clockUrl: clockUrl ?? null,
    lists: lists ?? false,
    deep: false,
  };
  const lines = await runHealth(systemClock, await doctorChecks(parts, options));
  return new Map(lines.map((line) => [line.name, line]));
}

const withSettings = (settings: Record<string, string>) => loadConfig({ ...healthy.settings, ...settings });

/** The lines that are not ok, as `status name`. */
function troubles(lines: ReadonlyMap<string, HealthLine>): string[] {
  return [...lines.values()]
    .filter(({ status }) => status !== "ok")
    .map(({ status, name }) => `${status} ${name}`);
}

/** Lines whose failing examples are in other tests: health-checks for the first two, and own-files.slow. */
const BROKEN_ELSEWHERE = ["public ips", "disk", "files"];

test("each line of a sound installation has an example that breaks it", async () => {
  const broken = new Set(BREAKS.flatMap(({ lines }) => lines.map((line) => line.replace(/^\w+ /, ""))));
  const names = [...(await look()).keys()];
  expect(names.filter((name) => !broken.has(name))).toEqual(BROKEN_ELSEWHERE);
});

test("a sound installation has only ok lines", async () => {
  const lines = await look();
  expect(troubles(lines)).toEqual([]);
  expect([...lines.keys()]).toEqual([
    "variables",
    "public url",
    "public ips",
    "owner",
    "delivery",
    "unsubscribe links",
    "disk",
    "database",
    "quotas",
    "redis",
    "mail queue",
    "webhook queue",
    "providers",
    "block lists",
    "feedback",
    "complaints",
    "feedback loops",
    "volume",
    "warm-up",
    "send rate",
    "outbound tls",
    "reputation",
    "hard bounces",
    "certificate",
    "clock",
    "files",
    "master key",
    "egress",
    `ptr ${PUBLIC_IP}`,
    `ehlo ${PUBLIC_IP}`,
    `spf ${PUBLIC_IP}`,
    "our delegation",
    "our hosts",
    "our mx",
    "our spf",
    "our dmarc",
    "our tls",
    "our dkim",
    "dkim keys",
    "unsubscribe page",
    "role mailboxes",
    "our tlsa",
    "tls port",
    `domain ${CUSTOMER}`,
    "integrity",
  ]);
});

/** Breaks one thing, or returns a change of the checks that breaks it. */
interface Broken {
  breaks: string;
  by: () => Look | Promise<Look> | void | Promise<void>;
  mend?: () => unknown;
  lines: string[];
  says: RegExp;
}

const dns = () => healthy.service.dns;

async function certificate(
  name: string,
  options: { days?: number; from?: number; host?: string },
): Promise<Look> {
  const notBeforeDate = new Date(Date.now() + (options.from ?? -1) * DAY_MS);
  const made = await generate([{ name: "commonName", value: options.host ?? `mx.${ZONE}` }], {
    algorithm: "sha256",
    notBeforeDate,
    notAfterDate: new Date(Date.now() + (options.days ?? 90) * DAY_MS),
    extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: options.host ?? `mx.${ZONE}` }] }],
  });
  return files(name, made.private, made.cert);
}

function files(name: string, key: string, cert: string): Look {
  const [SMTP_TLS_KEY, SMTP_TLS_CERT] = [join(folder, `${name}.key`), join(folder, `${name}.cert`)];
  writeFileSync(SMTP_TLS_KEY, key);
  writeFileSync(SMTP_TLS_CERT, cert);
  return { config: withSettings({ SMTP_TLS_KEY, SMTP_TLS_CERT }) };
}

async function dueFor(ms: number): Promise<void> {
  const { db } = healthy.service.app;
  const sender = await db.first<{ id: string }>("SELECT id FROM senders");
  const due = {
    ord: 0,
    email: "a@b.test",
    domain: "b.test",
    kind: "to",
    status: "queued",
    reason: null,
  } as const;
  await db.write([
    {
      sql: `INSERT INTO messages (id, sender_id, direction, status, from_email, to_list, subject, created_at)
        VALUES ('late', ?, 'outbound', 'queued', 'f@f.test', '[]', '', 1)`,
      args: [sender?.id ?? ""],
    },
    insertRecipients(sender?.id ?? "", "late", [{ ...due, dueAt: Date.now() - ms }], 1),
    // If a worker claimed it, it would not wait.
    { sql: "UPDATE recipients SET attempts = 0 WHERE message_id = 'late'", args: [] },
  ]);
}

async function domainStatus(status: string): Promise<void> {
  await healthy.service.app.db.write([{ sql: "UPDATE domains SET status = ?", args: [status] }]);
}

async function forgetStep(): Promise<void> {
  const sql = "UPDATE schema_migrations SET version = -1 WHERE version = 1";
  await healthy.service.app.db.write([{ sql, args: [] }]);
}

/** A complete copy of the service's database. */
function copy(name: string): string {
  const file = join(folder, name);
  writeFileSync(file, "");
  copyDatabase(join(healthy.service.folder, "postrider.db"), file);
  return file;
}

/** An opened copy with one page of an index overwritten. */
async function damagedCopy(): Promise<Look> {
  const file = copy("damaged.db");
  const whole = await openDb(systemClock, { url: `file:${file}`, authToken: null, syncUrl: null });
  const page = await whole.first<{ rootpage: number }>(
    "SELECT rootpage FROM sqlite_schema WHERE name = 'suppressions_by_sender'",
  );
  await whole.close();
  const opened = openSync(file, "r+");
  writeSync(opened, Buffer.alloc(4096, 0x55), 0, 4096, ((page?.rootpage ?? 2) - 1) * 4096);
  closeSync(opened);
  const DATABASE_URL = `file:${file}`;
  const db = await openDb(systemClock, { url: DATABASE_URL, authToken: null, syncUrl: null });
  closing.push(() => db.close());
  return { db, config: withSettings({ DATABASE_URL }) };
}

/** A copy with a push that has been due for ten minutes, where no worker takes it. */
async function latePush(): Promise<Look> {
  const DATABASE_URL = `file:${copy("pushes.db")}`;
  const db = await openDb(systemClock, { url: DATABASE_URL, authToken: null, syncUrl: null });
  closing.push(() => db.close());
  await db.write([
    {
      sql: `INSERT INTO webhooks (id, sender_id, url, event_types, secret, created_at, updated_at)
        SELECT 'hook', id, 'https://hook.test/', '["*"]', '', 1, 1 FROM senders LIMIT 1`,
      args: [],
    },
    {
      sql: `INSERT INTO webhook_deliveries (id, webhook_id, sender_id, type, status, due_at, created_at)
        SELECT 'push', 'hook', sender_id, 'bounce', 'pending', ?, 1 FROM webhooks WHERE id = 'hook'`,
      args: [Date.now() - 10 * 60_000],
    },
  ]);
  return { db, config: withSettings({ DATABASE_URL }) };
}

/** A web server whose clock is that far ahead. */
function clockServer(ms: number): string {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => new Response(null, { headers: { date: new Date(Date.now() + ms).toUTCString() } }),
  });
  closing.push(() => server.stop(true));
  return server.url.href;
}

/** Puts another web server at the public URL, without TLS. */
function webServer(fetch: () => Response): Look {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch });
  closing.push(() => server.stop(true));
  return { config: withSettings({ PUBLIC_URL: `http://api.example.com:${server.port}` }) };
}

/** Puts another listener in place of ours. */
function listener(options: MxOptions): Look {
  const mx = startMx(options);
  closing.push(() => mx.stop());
  return { config: withSettings({ SMTP_PORT: String(mx.port) }) };
}

const BREAKS: Broken[] = [
  {
    breaks: "a variable that resembles a setting",
    by: () => ({ config: withSettings({ SMTP_RELAY: "smtp://relay.example" }) }),
    lines: ["warn variables"],
    says: /SMTP_RELAY \(did you mean SMTP_RELAY_URL\?\)/,
  },
  {
    breaks: "settings left to their defaults",
    by: () => {
      const { OWNER_EMAIL: _owner, PUBLIC_URL: _url, ...left } = healthy.settings;
      return { config: loadConfig({ ...left, DELIVERY: "capture" }) };
    },
    lines: ["warn public url", "warn delivery"],
    says: /PUBLIC_URL is not set, so links in messages point to localhost/,
  },
  {
    breaks: "another owner than at the first start, which nothing has become of",
    by: () => ({ config: withSettings({ OWNER_EMAIL: "new@example.com" }) }),
    lines: ["warn owner"],
    says: /belongs to ops@example\.com/,
  },
  {
    breaks: "an API in the clear",
    by: () => {
      const { port } = new URL(healthy.service.url);
      return { config: withSettings({ PUBLIC_URL: `http://api.example.com:${port}` }) };
    },
    lines: ["warn public url"],
    says: /without encryption/,
  },
  {
    breaks: "no certificate",
    by: () => ({ config: withSettings({ SMTP_TLS_KEY: "", SMTP_TLS_CERT: "" }) }),
    lines: ["warn certificate"],
    says: /self-signed/,
  },
  {
    breaks: "a certificate near its end",
    by: async () => {
      const ca = await makeCa();
      const made = await generate([{ name: "commonName", value: `mx.${ZONE}` }], {
        algorithm: "sha256",
        ca,
        notAfterDate: new Date(Date.now() + 13.5 * DAY_MS),
        extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: `mx.${ZONE}` }] }],
      });
      return files("near", made.private, made.cert);
    },
    lines: ["warn certificate"],
    says: /in 13 days/,
  },
  {
    breaks: "a certificate past its end",
    by: () => certificate("past", { from: -10, days: -1 }),
    lines: ["fail certificate"],
    says: /expired/,
  },
  {
    breaks: "a certificate that is not good yet",
    by: () => certificate("early", { from: 1 }),
    lines: ["fail certificate"],
    says: /not valid before/,
  },
  {
    breaks: "a certificate for another name",
    by: () => certificate("other", { host: "other.test" }),
    lines: ["warn certificate"],
    says: /not for mx\.mail\.test/,
  },
  {
    breaks: "a certificate without those that lead to its authority",
    by: async () => {
      const { key, cert } = await makeCert([`mx.${ZONE}`], await makeCa());
      return files("alone", key, cert);
    },
    lines: ["warn certificate"],
    says: /lacks the certificate of the issuer \(CN=Test CA\)/,
  },
  {
    breaks: "a chain in which another authority follows",
    by: async () => {
      const [ca, other] = [await makeCa(), await makeCert(["other.test"])];
      const { key, cert } = await makeCert([`mx.${ZONE}`], ca);
      return files("stray", key, `${cert}\n${other.cert}\n${ca.cert}`);
    },
    lines: ["warn certificate"],
    says: /Certificate 2 of the chain has not issued the one before it/,
  },
  {
    breaks: "a chain that begins with its authority",
    by: async () => {
      const ca = await makeCa();
      const { key, cert } = await makeCert([`mx.${ZONE}`], ca);
      return files("upside-down", key, `${ca.cert}\n${cert}`);
    },
    lines: ["fail certificate"],
    says: /upside-down\.key is not the first one in .*upside-down\.cert/,
  },
  {
    breaks: "a key that is not the certificate's",
    by: async () => files("mixed", (await makeCert(["a.test"])).key, (await makeCert([`mx.${ZONE}`])).cert),
    lines: ["fail certificate"],
    says: /does not belong/,
  },
  {
    breaks: "a Redis that evicts",
    by: async () => void (await healthy.redis.command("config", "set", "maxmemory-policy", "allkeys-lru")),
    mend: () => healthy.redis.command("config", "set", "maxmemory-policy", "noeviction"),
    lines: ["fail redis"],
    says: /allkeys-lru/,
  },
  {
    breaks: "a Redis without a file",
    by: async () => void (await healthy.redis.command("config", "set", "appendonly", "no")),
    mend: () => healthy.redis.command("config", "set", "appendonly", "yes"),
    lines: ["warn redis"],
    says: /No message is lost/,
  },
  {
    breaks: "a Redis that is not there",
    by: () => ({ config: withSettings({ REDIS_URL: `redis://127.0.0.1:${freePort()}` }) }),
    lines: ["fail redis", "fail clock"],
    says: /ECONNREFUSED/,
  },
  {
    breaks: "mail that waits",
    by: () => dueFor(10 * 60_000),
    mend: () => healthy.service.app.db.write([{ sql: "DELETE FROM messages", args: [] }]),
    lines: ["warn mail queue"],
    says: /1 recipient is due, the oldest for 10 min/,
  },
  {
    breaks: "mail that waits long",
    by: () => dueFor(3 * 3_600_000),
    mend: () => healthy.service.app.db.write([{ sql: "DELETE FROM messages", args: [] }]),
    lines: ["fail mail queue"],
    says: /for 3 h/,
  },
  {
    breaks: "a push to a webhook that waits",
    by: latePush,
    lines: ["warn webhook queue"],
    says: /1 webhook delivery is due, the oldest for 10 min/,
  },
  {
    breaks: "a project that has used up a resource of its plan",
    by: () => ({ config: withSettings({ QUOTA_DOMAINS: "1,1,1" }) }),
    lines: ["warn quotas"],
    says: /Projects near a quota: \S+ domains 1 of 1/,
  },
  {
    breaks: "a master key that is another's",
    by: () => ({ config: withSettings({ MASTER_KEY: "another-key-".repeat(4) }) }),
    lines: ["fail master key"],
    says: /does not open/,
  },
  {
    breaks: "an address of EGRESS that this machine does not have",
    by: () => ({ config: withSettings({ EGRESS: "127.0.0.1,192.0.2.7@bulk" }) }),
    lines: ["fail egress"],
    says: /EGRESS names 192\.0\.2\.7, which/,
  },
  {
    breaks: "a mail server out of reach",
    by: () => ({ egress: { host: "127.0.0.1", port: freePort() } }),
    lines: ["fail egress"],
    says: /cannot be reached: connection failed/,
  },
  {
    breaks: "a mail server that will have nothing of us",
    by: () => {
      const mx = startMx({ banner: "554 5.7.1 you are on our list" });
      closing.push(() => mx.stop());
      return { egress: { host: "127.0.0.1", port: mx.port } };
    },
    lines: ["warn egress"],
    says: /answers 554: you are on our list/,
  },
  {
    breaks: "STARTTLS taken out of the replies of Google",
    by: () => {
      const mx = startMx();
      closing.push(() => mx.stop());
      dns().remove("aspmx.l.google.com");
      dns().add({ name: "aspmx.l.google.com", type: "A", data: "127.0.0.1" });
      return { egress: { host: "aspmx.l.google.com", port: mx.port } };
    },
    lines: ["fail egress"],
    says: /offers us no STARTTLS, although it offers it to everyone/,
  },
  {
    breaks: "a mail server of Microsoft with which TLS 1.2 cannot be agreed",
    by: async () => {
      const host = "example-com.mail.protection.outlook.com";
      const secureOptions = constants.SSL_OP_NO_TLSv1_2 | constants.SSL_OP_NO_TLSv1_3;
      const mx = startMx({ tls: { ...(await makeCert([host])), secureOptions } });
      closing.push(() => mx.stop());
      dns().add({ name: host, type: "A", data: "127.0.0.1" });
      return { egress: { host, port: mx.port } };
    },
    lines: ["fail egress"],
    says: /does not agree on TLS 1\.2 with us, which providers require/,
  },
  {
    breaks: "an object store that is not there",
    by: () => ({
      config: withSettings({
        CONTENT_STORE: "s3://mail",
        S3_ENDPOINT: `http://127.0.0.1:${freePort()}`,
        S3_ACCESS_KEY_ID: "id",
        S3_SECRET_ACCESS_KEY: "secret",
      }),
    }),
    lines: ["fail object store"],
    says: /ECONNREFUSED/,
  },
  {
    breaks: "no mail server named",
    by: () => ({ egress: { host: "nobody.test", port: 25 } }),
    lines: ["fail egress"],
    says: /nobody\.test has no address/,
  },
  {
    breaks: "an address without a name",
    by: () => dns().remove(REVERSE_NAME),
    mend: () => dns().add({ name: REVERSE_NAME, type: "PTR", data: `mx.${ZONE}` }),
    lines: [`fail ptr ${PUBLIC_IP}`],
    says: /no PTR record/,
  },
  {
    breaks: "an address with a name that leads elsewhere",
    by: () => {
      dns().remove(REVERSE_NAME);
      dns().add({ name: REVERSE_NAME, type: "PTR", data: "host.provider.test" });
    },
    lines: [`fail ptr ${PUBLIC_IP}`],
    says: /does not resolve back/,
  },
  {
    breaks: "an address with a name that is not ours",
    by: () => dns().add({ name: "host.provider.test", type: "A", data: PUBLIC_IP }),
    mend: () => {
      dns().remove(REVERSE_NAME);
      dns().add({ name: REVERSE_NAME, type: "PTR", data: `mx.${ZONE}` });
    },
    lines: [`warn ptr ${PUBLIC_IP}`],
    says: /EHLO mx\.mail\.test/,
  },
  {
    breaks: "a host without its address",
    by: () => {
      dns().remove(`ns.${ZONE}`);
      dns().add({ name: `ns.${ZONE}`, type: "A", data: "192.0.2.99" });
    },
    mend: () => {
      dns().remove(`ns.${ZONE}`);
      dns().add({ name: `ns.${ZONE}`, type: "A", data: PUBLIC_IP });
    },
    lines: ["fail our hosts"],
    says: /ns\.mail\.test A is 192\.0\.2\.99, not 203\.0\.112\.1/,
  },
  {
    breaks: "a zone that nobody has delegated",
    by: () => dns().remove(ZONE),
    mend: () => publishZone(healthy.service),
    lines: ["fail our delegation", "fail our hosts", "fail our mx", "fail our spf"],
    says: /our name server gets no queries/,
  },
  {
    breaks: "a zone without the record that asks for TLS reports",
    by: () => dns().remove(`_smtp._tls.${ZONE}`),
    mend: () => publishZone(healthy.service),
    lines: ["fail our tls"],
    says: /_smtp\._tls\.mail\.test TXT is nothing, not v=TLSRPTv1/,
  },
  {
    breaks: "a zone without its DMARC record",
    by: () => dns().remove(`_dmarc.${ZONE}`),
    mend: () => publishZone(healthy.service),
    lines: ["fail our dmarc"],
    says: /_dmarc\.mail\.test TXT is nothing/,
  },
  {
    breaks: "an MTA-STS policy that senders neither find nor can read",
    by: async () => {
      const ca = await makeCa();
      const { key, cert } = await makeCert([`mta-sts.${ZONE}`, `mx.${ZONE}`], ca);
      return files("sts", key, `${cert}\n${ca.cert}`);
    },
    lines: ["fail our tls", "warn tls port"],
    says: /_mta-sts\.mail\.test TXT is nothing.*\nThe policy at mta-sts\.mail\.test cannot be read/,
  },
  {
    breaks: "a DKIM key that is not published",
    by: () => dns().behave("servfail", `pr1._domainkey.onboarding.${ZONE}`),
    mend: () => dns().behave("answer", `pr1._domainkey.onboarding.${ZONE}`),
    lines: ["fail our dkim"],
    says: /pr1\._domainkey\.onboarding\.mail\.test TXT cannot be looked up: servfail/,
  },
  {
    breaks: "a verified domain that has lost a record",
    by: () => dns().remove(`_dmarc.${CUSTOMER}`),
    mend: () => customerDmarc(),
    lines: [`fail domain ${CUSTOMER}`],
    says: /verified, and these records are missing: dmarc/,
  },
  {
    breaks: "a domain whose name servers are silent",
    by: () => dns().behave("servfail", `_dmarc.${CUSTOMER}`),
    mend: () => dns().behave("answer", `_dmarc.${CUSTOMER}`),
    lines: [`warn domain ${CUSTOMER}`],
    says: /cannot be looked up: dmarc/,
  },
  {
    breaks: "a domain that is pending",
    by: () => domainStatus("pending"),
    mend: () => domainStatus("verified"),
    lines: [`warn domain ${CUSTOMER}`],
    says: /pending, although all its records are published/,
  },
  {
    breaks: "an address with a name that its provider gave",
    by: () => {
      dns().remove(REVERSE_NAME);
      dns().add({ name: REVERSE_NAME, type: "PTR", data: "static.203-0-112-1.provider.test" });
      dns().add({ name: "static.203-0-112-1.provider.test", type: "A", data: PUBLIC_IP });
    },
    mend: () => {
      dns().remove(REVERSE_NAME);
      dns().add({ name: REVERSE_NAME, type: "PTR", data: `mx.${ZONE}` });
    },
    lines: [`warn ptr ${PUBLIC_IP}`],
    says: /looks like an address that changes hands/,
  },
  {
    breaks: "an address that our SPF record lacks",
    by: () => {
      dns().remove(`bounce.${ZONE}`);
      dns().add({ name: `bounce.${ZONE}`, type: "TXT", data: "v=spf1 ip4:192.0.2.1 -all" });
    },
    mend: () => publishZone(healthy.service),
    lines: [`fail spf ${PUBLIC_IP}`, "fail our mx", "fail our spf"],
    says: /SPF of bounce\.mail\.test is fail/,
  },
  {
    breaks: "a name in EHLO whose SPF record lacks our address",
    by: () => {
      dns().remove(`mx.${ZONE}`);
      dns().add(
        { name: `mx.${ZONE}`, type: "A", data: PUBLIC_IP },
        { name: `mx.${ZONE}`, type: "TXT", data: "v=spf1 -all" },
      );
    },
    mend: () => publishZone(healthy.service),
    lines: [`fail spf ${PUBLIC_IP}`, "fail our spf"],
    says: /SPF of mx\.mail\.test is fail/,
  },
  {
    breaks: "a mail server that sees us elsewhere",
    by: () => {
      const mx = startMx({
        extensions: ["SIZE"],
        answers: { EHLO: "250 mx.test at your service, [203.0.112.9]" },
      });
      closing.push(() => mx.stop());
      return { egress: { host: "127.0.0.1", port: mx.port } };
    },
    lines: ["fail egress"],
    says: /sees us at 203\.0\.112\.9, which PUBLIC_IPS lacks/,
  },
  {
    breaks: "a domain with an SPF record that receivers cannot evaluate",
    by: () => customerSpf("v=spf1 ipv4:192.0.2.1 include:spf.mail.test ~all"),
    mend: () => customerSpf(),
    lines: [`fail domain ${CUSTOMER}`],
    says: /Receivers cannot evaluate the SPF record/,
  },
  {
    breaks: "a domain whose SPF record has little room left",
    by: () => {
      const more = Array.from({ length: 8 }, (_, at) => `p${at}.test`);
      for (const name of more) dns().add({ name, type: "TXT", data: "v=spf1 ip4:192.0.2.1 -all" });
      customerSpf(
        ["v=spf1", ...more.map((name) => `include:${name}`), `include:spf.${ZONE}`, "~all"].join(" "),
      );
    },
    mend: () => customerSpf(),
    lines: [`warn domain ${CUSTOMER}`],
    says: /needs 9 DNS lookups of the 10/,
  },
  {
    breaks: "a domain whose SPF record needs too many lookups",
    by: () => {
      const more = Array.from({ length: 10 }, (_, at) => `q${at}.test`);
      for (const name of more) dns().add({ name, type: "TXT", data: "v=spf1 ip4:192.0.2.1 -all" });
      customerSpf(
        ["v=spf1", ...more.map((name) => `include:${name}`), `include:spf.${ZONE}`, "~all"].join(" "),
      );
    },
    mend: () => customerSpf(),
    lines: [`fail domain ${CUSTOMER}`],
    says: /more than 10 DNS lookups/,
  },
  {
    breaks: "a domain whose SPF record names three hosts that are not there",
    by: () => customerSpf(`v=spf1 a:x.test a:y.test a:z.test include:spf.${ZONE} ~all`),
    mend: () => customerSpf(),
    lines: [`fail domain ${CUSTOMER}`],
    says: /two names/,
  },
  {
    breaks: "a domain that no answer reaches",
    by: () => {
      dns().remove(CUSTOMER);
      dns().add({ name: CUSTOMER, type: "TXT", data: SPF });
    },
    mend: () => customerSpf(),
    lines: [`warn domain ${CUSTOMER}`],
    says: /neither MX nor A/,
  },
  {
    breaks: "an old DKIM key",
    by: () => keysMade("- 401 * 86400000"),
    mend: () => keysMade("+ 401 * 86400000"),
    lines: [`warn domain ${CUSTOMER}`],
    says: /A DKIM key is older than 400 days/,
  },
  {
    breaks: "a domain whose alias leads to no key",
    by: () => keyRecords(false),
    mend: () => keyRecords(true),
    lines: ["fail dkim keys", `fail domain ${CUSTOMER}`],
    says: /does not pass as receivers check it: dkim=\w+ \(pr1\)/,
  },
  {
    breaks: "a DKIM key whose record was cut after its first string",
    by: () => cutKeyRecords(),
    mend: () => keyRecords(true),
    lines: ["fail dkim keys", `fail domain ${CUSTOMER}`],
    says: /verified, and these records are missing: dkim/,
  },
  {
    breaks: "a domain with two SPF records",
    by: () => {
      customerSpf();
      dns().add({ name: CUSTOMER, type: "TXT", data: "v=spf1 -all" });
    },
    mend: () => customerSpf(),
    lines: [`fail domain ${CUSTOMER}`],
    says: /SPF/,
  },
  {
    breaks: "a domain whose SPF record lets anyone send",
    by: () => customerSpf(`v=spf1 include:spf.${ZONE} +all`),
    mend: () => customerSpf(),
    lines: [`fail domain ${CUSTOMER}`],
    says: /SPF record/,
  },
  {
    breaks: "a domain with two DMARC records",
    by: () => dns().add({ name: `_dmarc.${CUSTOMER}`, type: "TXT", data: "v=DMARC1; p=reject" }),
    mend: () => customerDmarc(),
    lines: [`fail domain ${CUSTOMER}`],
    says: /these records are missing: dmarc/,
  },
  {
    breaks: "a domain whose DMARC record names no known policy",
    by: () => customerDmarc(`v=DMARC1; p=monitor; rua=mailto:dmarc@${ZONE}`),
    mend: () => customerDmarc(),
    lines: [`fail domain ${CUSTOMER}`],
    says: /these records are missing: dmarc/,
  },
  {
    breaks: "an address that a block list had when the service last asked",
    by: () =>
      write(
        `INSERT INTO installation (name, value) VALUES ('lists_found', json_object('at', ${Date.now()},
          'addresses', json_array('${PUBLIC_IP}'), 'lists', json_array(json_object('list', 'zen.spamhaus.org',
          'status', 'fail', 'message', 'Spamhaus ZEN lists ${PUBLIC_IP}.', 'fix', 'Find the cause.'))))`,
      ),
    mend: () => write("DELETE FROM installation WHERE name = 'lists_found'"),
    lines: ["fail block lists"],
    says: /Spamhaus ZEN lists/,
  },
  {
    breaks: "a domain in no zone",
    by: () => {
      dns().remove(CUSTOMER);
      dns().add({ name: CUSTOMER, type: "TXT", data: SPF }, { name: CUSTOMER, type: "A", data: PUBLIC_IP });
    },
    mend: () => customerSpf(),
    lines: [`warn domain ${CUSTOMER}`],
    says: /in no zone with an SOA record/,
  },
  {
    breaks: "a DKIM key of 1024 bits",
    by: () => keyOfBits(1024),
    mend: () => replaceKey(null),
    lines: [`warn domain ${CUSTOMER}`],
    says: /A DKIM key has 1024 bits; receivers expect 2048/,
  },
  {
    breaks: "a DKIM key of less than 1024 bits",
    by: () => keyOfBits(768),
    mend: () => replaceKey(null),
    lines: [`fail domain ${CUSTOMER}`],
    says: /A DKIM key has 768 bits, and receivers ignore its signature/,
  },
  {
    breaks: "a DKIM key behind many aliases",
    by: () => {
      for (const [from, to] of [
        ["0", "1"],
        ["1", "2"],
        ["2", "3"],
        ["3", "4"],
      ])
        dns().add({ name: `a${from}.test`, type: "CNAME", data: `a${to}.test` });
      return aliasKey("a0.test", "a4.test");
    },
    mend: () => aliasKey(null),
    lines: [`warn domain ${CUSTOMER}`],
    says: /behind more than 3 aliases/,
  },
  {
    breaks: "a domain that lacks the record of one of two DKIM keys",
    by: secondKey,
    mend: () => write("DELETE FROM dkim_keys WHERE token = 'second'"),
    lines: [`fail domain ${CUSTOMER}`],
    says: /these records are missing: dkim pr2\./,
  },
  {
    breaks: "a domain whose parent has lost its DMARC record",
    by: async () => {
      subdomain = await verifiedDomain(healthy.service, `news.${CUSTOMER}`);
      dns().add({ name: `news.${CUSTOMER}`, type: "A", data: PUBLIC_IP });
      await keyRecords(true);
      dns().remove(`_dmarc.${CUSTOMER}`);
    },
    mend: async () => {
      customerDmarc();
      await healthy.service.call("DELETE", `/v1/domains/${subdomain}`);
    },
    lines: [`fail domain ${CUSTOMER}`, `warn domain news.${CUSTOMER}`],
    says: /customer\.test, the domain above, has no DMARC record/,
  },
  {
    breaks: "a DMARC record without an address for reports",
    by: () => customerDmarc("v=DMARC1; p=none"),
    mend: () => customerDmarc(),
    lines: [`warn domain ${CUSTOMER}`],
    says: /has no address for reports/,
  },
  {
    breaks: "a DMARC record whose reports go to a stranger",
    by: () => customerDmarc("v=DMARC1; p=none; rua=mailto:d@reports.example!10m"),
    mend: () => customerDmarc(),
    lines: [`warn domain ${CUSTOMER}`],
    says: /asks for reports to reports\.example, which does not take them/,
  },
  {
    breaks: "a DMARC record with which SPF never aligns",
    by: () => customerDmarc(`v=DMARC1; p=none; aspf=s; rua=mailto:dmarc@${ZONE}`),
    mend: () => customerDmarc(),
    lines: [`warn domain ${CUSTOMER}`],
    says: /aspf=s/,
  },
  {
    breaks: "a BIMI record without an SVG file",
    by: () => customerBimi("v=BIMI1; l=http://example.com/logo.png;", ENFORCED),
    mend: mendBimi,
    lines: [`warn domain ${CUSTOMER}`],
    says: /l=http:\/\/example\.com\/logo\.png is not the https URL of an SVG file/,
  },
  {
    breaks: "a BIMI record without an enforced DMARC policy",
    by: () =>
      customerBimi("v=BIMI1; l=https://example.com/logo.svg;", `v=DMARC1; p=none; rua=mailto:dmarc@${ZONE}`),
    mend: mendBimi,
    lines: [`warn domain ${CUSTOMER}`],
    says: /no logo is shown: the DMARC policy of customer\.test is none, for 100 % of mail/,
  },
  {
    breaks: "links to unsubscribe that end early",
    by: () => ({ config: withSettings({ RETENTION_EVENT_DAYS: "59" }) }),
    lines: ["warn unsubscribe links"],
    says: /deleted after 59 days/,
  },
  {
    breaks: "a provider that asks us to wait",
    by: () => restingLane({ refusals: 1, opensAt: Date.now() + 60_000 }),
    mend: () => write("DELETE FROM lanes"),
    lines: ["warn providers"],
    says: /Asked to wait by G/,
  },
  {
    breaks: "a provider that refuses many addresses",
    by: () => laneDay({ accepted: 94, deferred: 0, refused: 6 }),
    mend: () => laneDay(null),
    lines: ["warn providers"],
    says: /More than 5 % of today's mail is refused by G/,
  },
  {
    breaks: "a provider that defers much",
    by: () => laneDay({ accepted: 89, deferred: 11, refused: 0 }),
    mend: () => laneDay(null),
    lines: ["warn providers"],
    says: /More than 10 % of today's attempts are deferred by G/,
  },
  {
    breaks: "more complaints than providers want",
    by: () => weekOf({ settled: 1000, complainants: 2 }),
    mend: () => weekOf(null),
    lines: ["warn feedback", "warn reputation"],
    says: /1 project is above 0\.1 % complaints/,
  },
  {
    breaks: "more complaints than providers take",
    by: () => weekOf({ settled: 1000, complainants: 3 }),
    mend: () => weekOf(null),
    lines: ["warn feedback", "fail reputation"],
    says: /1 project is above 0\.3 % complaints/,
  },
  {
    breaks: "more hard bounces than providers want",
    by: () => weekOf({ settled: 900, complainants: 0, bounced: 18 }),
    mend: () => weekOf(null),
    lines: ["warn hard bounces"],
    says: /1 project is above 2 % hard bounces in a week/,
  },
  {
    breaks: "more hard bounces than providers take",
    by: () => weekOf({ settled: 900, complainants: 0, bounced: 45 }),
    mend: () => weekOf(null),
    lines: ["fail hard bounces"],
    says: /1 project is above 5 % hard bounces in a week/,
  },
  {
    breaks: "much mail of which nobody reports",
    by: () => weekOf({ settled: 1000, complainants: 0 }),
    mend: () => weekOf(null),
    lines: ["warn feedback"],
    says: /No DMARC or TLS report has arrived in 7 days/,
  },
  {
    breaks: "a provider with no complaint about much mail, although it sends complaints to those who enrol",
    by: () => providerDay("yahoo", { delivered: 5000, complained: 0 }),
    mend: () => write("DELETE FROM stats_providers"),
    lines: ["warn feedback loops"],
    says: /from Yahoo \(https:\/\/senders\.yahooinc\.com\/complaint-feedback-loop\/\)\. Is the service not enrolled/,
  },
  {
    breaks: "more complaints at one provider than it wants",
    by: () => providerDay("yahoo", { delivered: 2000, complained: 2 }),
    mend: () => write("DELETE FROM stats_providers"),
    lines: ["warn complaints"],
    says: /0\.1 % of a week's mail or more: Yahoo \(2 of 2000\)/,
  },
  {
    breaks: "more complaints at one provider than it takes",
    by: () => providerDay("yahoo", { delivered: 1000, complained: 3 }),
    mend: () => write("DELETE FROM stats_providers"),
    lines: ["fail complaints"],
    says: /0\.3 % of a week's mail or more: Yahoo \(3 of 1000\)/,
  },
  {
    breaks: "a day with more than twice the mail of the best one",
    by: async () => {
      await usageOf(1, 600);
      await usageOf(0, 1201);
    },
    mend: () => write("DELETE FROM usage"),
    lines: ["warn volume"],
    says: /1201 recipients today; the best of the last 30 days had 600/,
  },
  {
    breaks: "a new address whose room of the day is used up",
    by: async () => {
      await laneDay({ accepted: 50, deferred: 0, refused: 0 }, "google@127.0.0.1");
      await write(
        "INSERT INTO warm_ups (lane, day, step, target) VALUES ('google@127.0.0.1', ?, 0, 100000)",
        today(),
      );
      return { config: withSettings({ ...youngAddress(), DESTINATION_RATE: "19" }) };
    },
    mend: async () => {
      await laneDay(null);
      await write("DELETE FROM warm_ups");
    },
    lines: ["warn warm-up"],
    says: /Google from 127\.0\.0\.1: day 1, 50 of 50 used/,
  },
  {
    breaks: "a new address that sends fast",
    by: () => ({ config: withSettings(youngAddress()) }),
    lines: ["warn send rate"],
    says: /at 20 messages a second over 5 connections of up to 500 messages to a destination, also from 127\.0\.0\.1/,
  },
  {
    breaks: "a message to Google in the clear",
    by: () => attemptAt("aspmx.l.google.com", null),
    mend: () => write("DELETE FROM messages WHERE id = 'seen'"),
    lines: ["warn outbound tls"],
    says: /1 went without TLS 1\.2: Google \(in the clear\)/,
  },
  {
    breaks: "a message to Microsoft over TLS 1.0",
    by: () => attemptAt("example-com.mail.protection.outlook.com", "TLSv1 AES128-SHA"),
    mend: () => write("DELETE FROM messages WHERE id = 'seen'"),
    lines: ["warn outbound tls"],
    says: /1 went without TLS 1\.2: [\w ]+ \(TLSv1 AES128-SHA\)/,
  },
  {
    breaks: "an alias as our name in EHLO",
    by: () => dns().add({ name: `mx.${ZONE}`, type: "CNAME", data: "host.provider.test" }),
    mend: () => publishZone(healthy.service),
    lines: [`fail ehlo ${PUBLIC_IP}`],
    says: /which is an alias of host\.provider\.test/,
  },
  {
    breaks: "a name in EHLO that has another address",
    by: () => {
      dns().remove(`mx.${ZONE}`);
      dns().add(
        { name: `mx.${ZONE}`, type: "A", data: "192.0.2.99" },
        { name: `mx.${ZONE}`, type: "TXT", data: `v=spf1 include:spf.${ZONE} ~all` },
      );
    },
    mend: () => publishZone(healthy.service),
    lines: [`fail ptr ${PUBLIC_IP}`, `fail ehlo ${PUBLIC_IP}`, "fail our hosts"],
    says: /EHLO mx\.mail\.test, which does not have this address/,
  },
  {
    breaks: "a public URL without an address",
    by: () => dns().remove("api.example.com"),
    mend: () => dns().add({ name: "api.example.com", type: "A", data: "127.0.0.1" }),
    lines: ["warn unsubscribe page"],
    says: /cannot be reached: api\.example\.com has no address/,
  },
  {
    breaks: "a public URL with a certificate that nobody trusts",
    by: async () => {
      const server = Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        tls: await makeCert(["other.test"]),
        fetch: () => new Response(null),
      });
      closing.push(() => server.stop(true));
      return { config: withSettings({ PUBLIC_URL: `https://api.example.com:${server.port}` }) };
    },
    lines: ["warn unsubscribe page"],
    says: /cannot be reached: TLS: DEPTH_ZERO_SELF_SIGNED_CERT/,
  },
  {
    breaks: "a proxy that redirects links to unsubscribe",
    by: () => webServer(() => Response.redirect("https://www.example.com/", 301)),
    lines: ["warn public url", "fail unsubscribe page"],
    says: /is redirected to https:\/\/www\.example\.com\//,
  },
  {
    breaks: "a proxy that asks for a login",
    by: () => webServer(() => new Response("Forbidden", { status: 403 })),
    lines: ["warn public url", "fail unsubscribe page"],
    says: /is answered 403 by something that is not this service/,
  },
  {
    breaks: "another service's page at the public URL",
    by: () => webServer(() => new Response("not found", { status: 404 })),
    lines: ["warn public url", "fail unsubscribe page"],
    says: /is answered 404 by something that is not this service/,
  },
  {
    breaks: "a listener that is not there",
    by: () => ({ config: withSettings({ SMTP_PORT: String(freePort()) }) }),
    lines: ["warn role mailboxes"],
    says: /cannot be tried: connection failed/,
  },
  {
    breaks: "a listener without TLS",
    by: () => listener({}),
    lines: ["fail role mailboxes"],
    says: /does not offer STARTTLS/,
  },
  {
    breaks: "a listener that shows a certificate for another name",
    by: async () => listener({ tls: await makeCert(["other.test"]) }),
    lines: ["warn role mailboxes"],
    says: /is for DNS:other\.test, not for mx\.mail\.test/,
  },
  {
    breaks: "a listener that refuses complaints",
    by: async () =>
      listener({
        tls: await makeCert([`mx.${ZONE}`]),
        answers: { RCPT: (to) => (to.includes("<abuse@") ? "550 5.1.1 no such user" : "250 ok") },
      }),
    lines: ["fail role mailboxes"],
    says: /refuses mail to abuse@mail\.test \(550 5\.1\.1 no such user\)\./,
  },
  {
    breaks: "TLSA records in a zone that is not signed",
    by: () => dns().add(tlsaRecord(TLSA, 3, 1, 1, Buffer.alloc(32))),
    mend: () => dns().remove(TLSA),
    lines: ["warn our tlsa"],
    says: /Without DNSSEC they have no effect/,
  },
  {
    breaks: "TLSA records of another certificate",
    by: () => {
      dns().add(tlsaRecord(TLSA, 3, 1, 1, Buffer.alloc(32)));
      signZone(dns(), () => true);
    },
    mend: () => {
      dns().remove(TLSA);
      dns().forge(null);
    },
    lines: ["fail our tlsa"],
    says: /do not fit the listener, so senders that know DANE do not deliver/,
  },
  {
    breaks: "a file that is damaged",
    by: () => damagedCopy(),
    lines: ["fail integrity"],
    says: /damaged|malformed/,
  },
  {
    breaks: "a schema that lacks a step",
    by: () => forgetStep(),
    mend: () =>
      healthy.service.app.db.write([
        { sql: "UPDATE schema_migrations SET version = 1 WHERE version = -1", args: [] },
      ]),
    lines: ["fail database"],
    says: /lacks migrations: 1 initial/,
  },
  {
    breaks: "a clock that another differs from",
    by: () => ({ clockUrl: new URL(clockServer(90_000)) }),
    lines: ["fail clock"],
    says: /the same as Redis, (?:8[89]|9[01])\.\d s behind 127\.0\.0\.1/,
  },
];

const TLSA = `_25._tcp.mx.${ZONE}`;
const SPF = `v=spf1 include:spf.${ZONE} ~all`;

function customerSpf(record = SPF): void {
  dns().remove(CUSTOMER);
  dns().add(
    { name: CUSTOMER, type: "TXT", data: record },
    { name: CUSTOMER, type: "A", data: PUBLIC_IP },
    CUSTOMER_SOA,
  );
}

function customerDmarc(record = `v=DMARC1; p=none; rua=mailto:dmarc@${ZONE}`): void {
  dns().remove(`_dmarc.${CUSTOMER}`);
  dns().add({ name: `_dmarc.${CUSTOMER}`, type: "TXT", data: record });
}

const BIMI = `default._bimi.${CUSTOMER}`;
const ENFORCED = `v=DMARC1; p=reject; rua=mailto:dmarc@${ZONE}`;

/** Publishes a BIMI record, and a DMARC record. */
function customerBimi(record: string, dmarc: string): void {
  dns().add({ name: BIMI, type: "TXT", data: record });
  customerDmarc(dmarc);
}

function mendBimi(): void {
  dns().remove(BIMI);
  customerDmarc();
}

/** Replaces the public key of the customer domain by one of another length. */
async function keyOfBits(bits: number): Promise<void> {
  const { publicKey } = generateKeyPairSync("rsa", { modulusLength: bits });
  await replaceKey(publicKey.export({ format: "der", type: "spki" }).toString("base64"));
}

let originalKey: string | null = null;
/** Id of the domain below the customer's, while there is one. */
let subdomain = "";

/** Gives the customer's domain another key, whose alias is not published. */
async function secondKey(): Promise<void> {
  await write(
    `INSERT INTO dkim_keys (token, domain_id, selector, algorithm, public_key, private_key, status, created_at)
      SELECT 'second', domain_id, 'pr2', algorithm, public_key, private_key, status, created_at FROM dkim_keys
      WHERE domain_id IS NOT NULL`,
  );
  await keyRecords(true);
}

async function replaceKey(key: string | null): Promise<void> {
  const { db } = healthy.service.app;
  const row = await db.first<{ key: string }>(
    "SELECT public_key AS key FROM dkim_keys WHERE domain_id IS NOT NULL",
  );
  originalKey ??= row?.key ?? "";
  await write("UPDATE dkim_keys SET public_key = ? WHERE domain_id IS NOT NULL", key ?? originalKey);
  await keyRecords(true);
}

/** Puts the customer's key behind an alias to one name, with the key at another; null: back to ours. */
async function aliasKey(alias: string | null, end = ""): Promise<void> {
  const key = await healthy.service.app.db.first<{ token: string; publicKey: string }>(
    "SELECT token, public_key AS publicKey FROM dkim_keys WHERE domain_id IS NOT NULL",
  );
  const name = `pr1._domainkey.${CUSTOMER}`;
  dns().remove(name);
  const target = dkimTarget(key?.token ?? "", ZONE);
  dns().add({ name, type: "CNAME", data: alias ?? target });
  if (end !== "") dns().add({ name: end, type: "TXT", data: textStrings(dkimRecord(key?.publicKey ?? "")) });
}

/** Publishes the keys of domains, or removes them. */
async function keyRecords(there: boolean): Promise<void> {
  for (const { token, publicKey } of await publishedKeys(healthy.service.app.db, Date.now(), "", 10)) {
    const name = dkimTarget(token, ZONE);
    dns().remove(name);
    if (there) dns().add({ name, type: "TXT", data: textStrings(dkimRecord(publicKey)) });
  }
}

/** Publishes only the first string of each key's record, as an editor does that takes one string. */
async function cutKeyRecords(): Promise<void> {
  for (const { token, publicKey } of await publishedKeys(healthy.service.app.db, Date.now(), "", 10)) {
    const name = dkimTarget(token, ZONE);
    dns().remove(name);
    dns().add({ name, type: "TXT", data: textStrings(dkimRecord(publicKey)).slice(0, 1) });
  }
}

async function write(sql: string, ...args: (string | number | null)[]): Promise<void> {
  await healthy.service.app.db.write([{ sql, args }]);
}

async function keysMade(change: string): Promise<void> {
  await write(`UPDATE dkim_keys SET created_at = created_at ${change} WHERE domain_id IS NOT NULL`);
}

const today = () => Math.floor(Date.now() / DAY_MS);

/** Settings of an address that begins to send today. */
function youngAddress(): Record<string, string> {
  const date = new Date().toISOString().slice(0, 10);
  return { EGRESS: "127.0.0.1", WARM_UP: `127.0.0.1:${date}` };
}

async function providerDay(
  provider: string,
  { delivered, complained }: { delivered: number; complained: number },
): Promise<void> {
  await write(
    `INSERT INTO stats_providers (sender_id, day, provider, delivered, complained)
      SELECT id, ?, ?, ?, ? FROM senders LIMIT 1`,
    today(),
    provider,
    delivered,
    complained,
  );
}

async function usageOf(daysAgo: number, recipients: number): Promise<void> {
  await write(
    "INSERT INTO usage (sender_id, day, recipients) SELECT id, ?, ? FROM senders LIMIT 1",
    new Date(Date.now() - daysAgo * DAY_MS).toISOString().slice(0, 10),
    recipients,
  );
}

/** Stores a delivered message with an attempt at a host. */
async function attemptAt(mx: string, tls: string | null): Promise<void> {
  await write(
    `INSERT INTO messages (id, sender_id, direction, status, from_email, to_list, subject, created_at)
      SELECT 'seen', id, 'outbound', 'delivered', 'f@f.test', '[]', '', 1 FROM senders LIMIT 1`,
  );
  await write(
    `INSERT INTO attempts (message_id, ord, attempt, started_at, duration_ms, outcome, mx, tls, smtp_code)
      VALUES ('seen', 0, 1, 1, 1, 'delivered', ?, ?, 250)`,
    mx,
    tls,
  );
}

async function laneDay(
  day: { accepted: number; deferred: number; refused: number } | null,
  lane = "google",
): Promise<void> {
  await write("DELETE FROM lane_figures");
  if (day === null) return;
  const { accepted, deferred, refused } = day;
  await write(
    "INSERT INTO lane_figures (day, lane, instance_id, accepted, deferred, refused) VALUES (?, ?, 'i', ?, ?, ?)",
    today(),
    lane,
    accepted,
    deferred,
    refused,
  );
}

async function restingLane(state: { refusals: number; opensAt: number }): Promise<void> {
  await write(
    "INSERT INTO lanes (name, state, version, changed_by, changed_at) VALUES ('google', ?, 1, 'test', ?)",
    JSON.stringify(state),
    Date.now(),
  );
}

async function weekOf(
  week: { settled: number; complainants: number; bounced?: number } | null,
): Promise<void> {
  await write("DELETE FROM reputation");
  if (week === null) return;
  const day = new Date().toISOString().slice(0, 10);
  await write(
    "INSERT INTO reputation (sender_id, day, settled, complainants, bounced) SELECT id, ?, ?, ?, ? FROM senders LIMIT 1",
    day,
    week.settled,
    week.complainants,
    week.bounced ?? 0,
  );
}

describe("GET /v1/health", () => {
  const asked = async (query = "") =>
    (await healthy.service.call("GET", `/v1/health${query}`, undefined, { key: healthy.service.accountKey }))
      .body.checks;
  const namesOf = (checks: { name: string }[]) => checks.map(({ name }) => name);

  test("checks what the world sees of our addresses, zone and hosts if it is asked to", async () => {
    const local = namesOf(await asked());
    expect(local).not.toContain(`ptr ${PUBLIC_IP}`);
    expect(local).toEqual(expect.arrayContaining(["complaints", "volume", "warm-up", "outbound tls"]));
    const names = namesOf(await asked("?dns=true"));
    expect(names).toEqual(
      expect.arrayContaining([`ptr ${PUBLIC_IP}`, `ehlo ${PUBLIC_IP}`, "our spf", "unsubscribe page"]),
    );
    expect(names.filter((name) => name.startsWith("domain "))).toEqual([]);
  });
});

test("a blocked lane comes with the request that opens it", async () => {
  await restingLane({ refusals: 9, opensAt: Date.now() + 60_000 });
  const line = (await look()).get("providers");
  await write("DELETE FROM lanes");
  expect(line).toMatchObject({
    status: "fail",
    action: { label: "Open the lane", path: "/v1/lanes/google/open" },
  });
});

test("a BIMI record with a logo and an enforced DMARC policy is sound", async () => {
  customerBimi("v=BIMI1; l=https://example.com/logo.svg; a=https://example.com/mark.pem", ENFORCED);
  const line = (await look()).get(`domain ${CUSTOMER}`);
  mendBimi();
  expect(line?.status).toBe("ok");
});

test("a DKIM key younger than its TTL is a remark, not a warning", async () => {
  const line = (await look()).get(`domain ${CUSTOMER}`);
  expect([line?.status, line?.message]).toEqual(["ok", expect.stringContaining("younger than its TTL")]);
});

test("a domain whose links lead to another organization is told so, without a warning", async () => {
  const line = (await look()).get(`domain ${CUSTOMER}`);
  expect([line?.status, line?.message]).toEqual([
    "ok",
    expect.stringContaining(`Its links lead to api.example.com: with the recommended aliases`),
  ]);
});

test("a domain whose own host of links does not answer is named", async () => {
  await write("UPDATE domains SET links_verified = 1");
  const { SMTP_TLS_KEY: _key, SMTP_TLS_CERT: _cert, ...settings } = healthy.settings;
  const line = (await look({ config: loadConfig({ ...settings, ACME_EMAIL: "ops@example.com" }) })).get(
    `domain ${CUSTOMER}`,
  );
  await write("UPDATE domains SET links_verified = 0");
  expect([line?.status, line?.message]).toEqual([
    "warn",
    expect.stringContaining(`https://links.${CUSTOMER} cannot be reached: links.${CUSTOMER} has no address`),
  ]);
});

const PUBLIC_IPV6 = "2a00:1450::5";

describe("an IPv6 address", () => {
  /** Looks with a second address, of IPv6, which the zone of the test does not have yet. */
  const lookAtBoth = (more: Look = {}, settings: Record<string, string> = {}) =>
    look({ ...more, config: withSettings({ PUBLIC_IPS: `${PUBLIC_IP},${PUBLIC_IPV6}`, ...settings }) });

  test("has separate lines for its PTR record, our name in EHLO and SPF", async () => {
    const lines = await lookAtBoth();
    const of = (ip: string) => ["ptr", "ehlo", "spf"].map((check) => lines.get(`${check} ${ip}`)?.status);
    expect([of(PUBLIC_IP), of(PUBLIC_IPV6)]).toEqual([
      ["ok", "ok", "ok"],
      ["fail", "fail", "fail"],
    ]);
    expect(lines.get(`ptr ${PUBLIC_IPV6}`)?.fix).toContain("Until then set SMTP_OUT_IPV6=0");
  });

  test("that another server sees and PUBLIC_IPS lacks is a fault of IPv6 alone", async () => {
    const answers = { EHLO: "250 mx.test at your service, [2a00:1450::9]" };
    const [v4, v6] = [startMx(), startMx({ ip: "::1", extensions: ["SIZE"], answers })];
    closing.push(
      () => v4.stop(),
      () => v6.stop(),
    );
    dns().add(
      { name: "both.test", type: "AAAA", data: "::1" },
      { name: "both.test", type: "A", data: "127.0.0.1" },
    );
    const at = async (port: number, settings = {}) =>
      lookAtBoth({ egress: { host: "both.test", port } }, settings);
    const lines = await at(v6.port);
    expect(lines.get("egress ipv6")).toMatchObject({
      status: "fail",
      message: expect.stringContaining("sees us at 2a00:1450::9, which PUBLIC_IPS lacks"),
    });
    expect(lines.get("egress")?.message).not.toContain("2a00");
    expect((await at(v4.port)).get("egress")?.status).toBe("ok");
    expect((await at(v6.port, { SMTP_OUT_IPV6: "0" })).has("egress ipv6")).toBe(false);
    const unnamed = await at(v6.port, { PUBLIC_IPS: PUBLIC_IP });
    expect(unnamed.get("egress ipv6")?.message).toContain("which PUBLIC_IPS lacks");
  });

  test("that a machine lacks is no fault, unless PUBLIC_IPS names one", async () => {
    const v4 = startMx();
    closing.push(() => v4.stop());
    dns().add(
      { name: "dual.test", type: "AAAA", data: "::1" },
      { name: "dual.test", type: "A", data: "127.0.0.1" },
    );
    const egress = { host: "dual.test", port: v4.port };
    expect((await look({ egress })).get("egress ipv6")?.status).toBe("ok");
    expect((await lookAtBoth({ egress })).get("egress ipv6")?.status).toBe("fail");
  });
});

const LISTED = "2.0.0.127.zen.spamhaus.org";
const OURS_IN_ZEN = `${PUBLIC_IP.split(".").toReversed().join(".")}.zen.spamhaus.org`;

describe("a block list", () => {
  const zen = async () => (await look({ lists: true })).get("list zen.spamhaus.org");
  const answer = (name: string, ...data: string[]) => {
    dns().remove(name);
    for (const each of data) dns().add({ name, type: "A", data: each });
  };

  test("is unknown if it does not show its test entry, because shared resolvers are told nothing", async () => {
    answer(LISTED);
    expect(await zen()).toMatchObject({
      status: "warn",
      message: expect.stringMatching(/^Unknown: Spamhaus ZEN/),
    });
  });

  test.each(["127.255.255.254", "127.255.255.252", "127.255.255.255", "192.0.2.1"])(
    "is unknown if it answers %s, which is no entry",
    async (code) => {
      answer(LISTED, code);
      answer(OURS_IN_ZEN, code);
      const line = await zen();
      expect([line?.status, line?.message]).toEqual(["warn", expect.stringContaining(code)]);
      answer(LISTED, "127.0.0.2");
      expect((await zen())?.message).toStartWith("Unknown: zen.spamhaus.org did not answer");
      answer(OURS_IN_ZEN);
    },
  );

  test("is asked only if the operator wants it, and fails for an address that it lists", async () => {
    answer(LISTED, "127.0.0.2", "127.0.0.4");
    expect((await look()).has("list zen.spamhaus.org")).toBe(false);
    expect((await zen())?.status).toBe("ok");
    answer(OURS_IN_ZEN, "127.0.0.3");
    expect(await zen()).toMatchObject({ status: "fail", message: `Spamhaus ZEN lists ${PUBLIC_IP}.` });
    answer(OURS_IN_ZEN);
  });

  test("is asked about IPv6 addresses apart, and one that has none is no fault", async () => {
    const config = withSettings({ PUBLIC_IPS: `${PUBLIC_IP},${PUBLIC_IPV6}` });
    const line = async () => (await look({ config, lists: true })).get("list zen.spamhaus.org ipv6");
    const entryOf = (ip: string) => `${(toReverseName(ip) ?? "").replace(".ip6.arpa", "")}.zen.spamhaus.org`;
    answer(LISTED, "127.0.0.2");
    expect(await line()).toMatchObject({ status: "ok", message: "Spamhaus ZEN lists no IPv6 addresses." });
    answer(entryOf("::ffff:7f00:2"), "127.0.0.2");
    expect((await line())?.status).toBe("ok");
    answer(entryOf(PUBLIC_IPV6), "127.0.0.4");
    expect(await line()).toMatchObject({ status: "fail", message: `Spamhaus ZEN lists ${PUBLIC_IPV6}.` });
    answer(entryOf(PUBLIC_IPV6));
  });

  test("of domains is asked about the domains of From", async () => {
    answer("dbltest.com.dbl.spamhaus.org", "127.0.1.2");
    answer(`${CUSTOMER}.dbl.spamhaus.org`, "127.0.1.2");
    const line = (await look({ lists: true })).get("list dbl.spamhaus.org");
    expect([line?.status, line?.message]).toEqual(["fail", `Spamhaus DBL lists ${CUSTOMER}.`]);
    answer(`${CUSTOMER}.dbl.spamhaus.org`);
  });
});

describe("if one thing is broken, its line reports it, and no other line does", () => {
  for (const { breaks, by, mend, lines, says } of BREAKS)
    test(breaks, async () => {
      const found = await look((await by()) ?? {});
      await mend?.();
      expect(troubles(found)).toEqual(lines);
      const broken = lines.map((line) => found.get(line.replace(/^\w+ /, "")));
      expect(broken.map((line) => line?.message).join("\n")).toMatch(says);
      for (const line of broken) expect(line?.fix ?? "").not.toBe("");
    });
});
