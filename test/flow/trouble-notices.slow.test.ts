import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "libsql";
import type { NoticeKind } from "../../src/core/notices/kinds.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/core/time/units.ts";
import { LISTS_PAUSE_MS } from "../../src/flows/notices/listed.ts";
import { LOOK_PAUSE_MS } from "../../src/flows/notices/watch.ts";
import { readFact } from "../../src/store/installation/facts.ts";
import { diskOf } from "../../src/wiring/process/disk.ts";
import { newFolder } from "../support/folder.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { until } from "../support/poll.ts";
import { callRole, type RoleProcess, startRole } from "../support/role-process.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";
import { type ShiftedClock, shiftedClock } from "../support/shifted-clock.ts";
import { makeCa } from "../support/tls.ts";

// Each trouble is real: a mail server's reply, an answer of the DNS, a file, a folder, a failing step. Only time is mocked.

setDefaultTimeout(120_000);

const PUBLIC_IP = "203.0.113.5";
const S3150 = `550 5.7.1 Unfortunately, messages from [${PUBLIC_IP}] weren't sent. Please contact your Internet service provider since part of their network is on our block list (S3150).`;

interface Shown {
  id: string;
  kind: NoticeKind;
  subject: string;
  message: string;
  endedAt: string | null;
}
const openOf = (kind: NoticeKind, { data }: { data: Shown[] }) =>
  data.find((notice) => notice.kind === kind && notice.endedAt === null);

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0)) await clean();
});

let clock: ShiftedClock;
let service: TestService;
let mx: TestMx;
/** The folder of the certificate and of what fills the disk. */
const folder = newFolder("trouble");

async function installCertificate(days: number): Promise<void> {
  const made = await makeCa({ notAfterDate: new Date(Date.now() + days * DAY_MS) });
  writeFileSync(join(folder, "key.pem"), made.key);
  writeFileSync(join(folder, "cert.pem"), made.cert);
}

/** Octets of the file that fills the disk, and how many of them other processes may take or free at the same time. */
const [TAKEN, NOISE] = [4 * 2 ** 30, 2 ** 30];
const disk = diskOf(folder);
/** False if the disk is nearly full anyway, so that it would not have room again. */
const canFill = Bun.which("fallocate") !== null && disk.free > disk.total / 10 + 2 * TAKEN;

const wide = async (method: string, path: string) =>
  (await service.call(method, path, undefined, { key: service.accountKey })).body;
const current = async (kind: NoticeKind) => openOf(kind, await wide("GET", "/v1/notices?limit=100"));
const mailed = async (kind: NoticeKind) => {
  const sql = "SELECT 1 FROM notices WHERE kind = ? AND mailed_at > 0";
  return (await service.app.db.first(sql, [kind])) !== null;
};

/** Lets time pass until there is a notice of the kind that was mailed. Returns it. */
async function raised(kind: NoticeKind, pause = LOOK_PAUSE_MS): Promise<Shown> {
  let found: Shown | undefined;
  await until(async () => {
    found = await current(kind);
    if (found === undefined) clock.shift(pause);
    return found !== undefined && (await mailed(kind));
  });
  return found as Shown;
}

/** Lets time pass until there is none. */
async function ended(kind: NoticeKind, pause = LOOK_PAUSE_MS): Promise<void> {
  await until(async () => {
    const isOpen = (await current(kind)) !== undefined;
    if (isOpen) clock.shift(pause);
    return !isOpen;
  });
}

describe("a notice of real trouble", () => {
  beforeAll(async () => {
    await installCertificate(90);
    mx = startMx({ answers: { MAIL: S3150 } });
    clock = shiftedClock();
    const env = {
      DELIVERY: "mx",
      SMTP_OUT_PORT: String(mx.port),
      PUBLIC_IPS: PUBLIC_IP,
      SMTP_TLS_KEY: join(folder, "key.pem"),
      SMTP_TLS_CERT: join(folder, "cert.pem"),
      MIN_FREE_BYTES: String(Math.max(0, disk.free - TAKEN + NOISE)),
    };
    service = await startService(env, clock, { disk: () => diskOf(folder) });
  });
  afterAll(async () => {
    await service.stop();
    mx.stop();
  });

  test("says that a provider refuses our address, and ends when its lane is opened", async () => {
    const { dns, send, message } = service;
    const exchange = "outlook-com.olc.protection.outlook.com";
    dns.add({ name: exchange, type: "A", data: "127.0.0.1" });
    dns.add({ name: "outlook.test", type: "MX", data: { preference: 10, exchange } });
    await verifiedDomain(service, "sender.test");
    for (const name of ["a", "b", "c", "d"])
      await send({ from: "news@sender.test", to: `${name}@outlook.test` });
    await until(async () => (await wide("GET", "/v1/lanes")).data[0]?.state === "blocked");
    const { subject, message: says } = await raised("address_blocked");
    expect([subject, says]).toEqual([
      "Outlook.com",
      `Outlook.com refuses our address, so mail to it waits. The last reply was: ${S3150}`,
    ]);
    mx.set({ MAIL: "250 ok" });
    expect(await wide("POST", "/v1/lanes/outlook/open")).not.toHaveProperty("error");
    await ended("address_blocked");
    await message(await send({ from: "news@sender.test", to: "e@outlook.test" }), "delivered");
  });

  test("says that a block list has our address, stays while the list is silent, and ends when it is off the list", async () => {
    const { dns } = service;
    const ours = `${PUBLIC_IP.split(".").toReversed().join(".")}.zen.spamhaus.org`;
    const answers = (name: string, data: string) => dns.add({ name, type: "A", data });
    answers("2.0.0.127.zen.spamhaus.org", "127.0.0.2");
    answers(ours, "127.0.0.3");
    // The first process that starts does not ask, so that a service that is restarted again and again asks no more.
    const { message } = await raised("address_listed", LISTS_PAUSE_MS);
    expect(message).toStartWith(
      `The block list zen.spamhaus.org has our address. Spamhaus ZEN lists ${PUBLIC_IP}.`,
    );
    const line = async () =>
      (await wide("GET", "/v1/health")).checks.find(({ name }: { name: string }) => name === "block lists");
    expect(await line()).toMatchObject({ status: "fail", message: `Spamhaus ZEN lists ${PUBLIC_IP}.` });
    const fact = (name: "lists_asked" | "lists_found") => readFact(service.app.db, name);
    const foundAt = async () => JSON.parse((await fact("lists_found")) ?? '{"at":0}').at;
    // A question that is still open would hear one answer from before the change, and one from after it.
    await until(async () => (await foundAt()) >= Number(await fact("lists_asked")));
    dns.remove("2.0.0.127.zen.spamhaus.org");
    dns.remove(ours);
    const before = await foundAt();
    clock.shift(LISTS_PAUSE_MS + MINUTE_MS);
    await until(async () => (await foundAt()) !== before);
    answers("2.0.0.127.zen.spamhaus.org", "127.0.0.2");
    expect(await current("address_listed")).toBeDefined();
    await ended("address_listed", LISTS_PAUSE_MS + MINUTE_MS);
  });

  test("says that a certificate from a file soon expires, and ends when the file is replaced", async () => {
    await installCertificate(10);
    const { message } = await raised("certificate_failing");
    expect(message).toMatch(/^The certificate for .+ fails\. It expires on \d{4}-\d\d-\d\d\.$/);
    await installCertificate(90);
    await ended("certificate_failing");
  });

  test.skipIf(!canFill)(
    "says that the disk is low while a file fills it, and ends when the file is gone",
    async () => {
      const filler = join(folder, "filler");
      expect(Bun.spawnSync(["fallocate", "-l", String(TAKEN), filler]).exitCode).toBe(0);
      const { message } = await raised("disk_low");
      expect(message).toMatch(
        /^The disk is nearly full. The disk has .+ free, so new messages and content are refused\.$/,
      );
      rmSync(filler);
      await ended("disk_low");
    },
  );
});

const KEY = "test-root-key-0123456789-0123456789";
/** Settings of processes, which have the time of the system. */
const SETTINGS = { ROOT_API_KEY: KEY, OWNER_EMAIL: "owner@example.com", DELIVERY: "capture" };
const noticesOf = async (running: RoleProcess) =>
  (await callRole(running, KEY, "GET", "/v1/notices?limit=100")).body as { data: Shown[] };
const mailsOf = async (running: RoleProcess, words: string) =>
  (await callRole(running, KEY, "GET", "/v1/emails?limit=100")).body.data.filter(
    ({ subject }: { subject: string }) => subject.startsWith(words),
  );

test("a notice says that backups have stopped, and ends with the next good one", async () => {
  const folder = newFolder("old-backup");
  const obstacle = join(folder, "no-folder");
  const start = () => startRole({ ...SETTINGS, DATA_DIR: folder, BACKUP_EVERY: "12h", BACKUP_TO: obstacle });
  /** Changes the database as if so much time had passed. */
  const change = (...sql: string[]) => {
    const database = new Database(join(folder, "postrider.db"));
    for (const one of sql) database.exec(one);
    database.close();
  };
  writeFileSync(obstacle, "");
  let running = await start();
  cleanups.push(() => running.kill());
  expect(openOf("backup_old", await noticesOf(running))).toBeUndefined();
  expect(await running.terminate()).toBe(0);
  const since = Date.now() - 30 * HOUR_MS;
  change(`UPDATE accounts SET created_at = ${since}`, "DELETE FROM installation WHERE name = 'backup_begun'");

  running = await start();
  await until(async () => openOf("backup_old", await noticesOf(running)) !== undefined);
  expect(openOf("backup_old", await noticesOf(running))?.message).toBe(
    "Backups have stopped. None was made in 30 hours. Look for `backups` in the log.",
  );
  await until(() => /"scope":"backups"|backups/.test(running.output().stderr));
  await until(async () => (await mailsOf(running, "Backup old: ")).length === 1);
  expect(await running.terminate()).toBe(0);

  rmSync(obstacle);
  change("DELETE FROM installation WHERE name = 'backup_begun'");
  running = await start();
  await until(() => running.output().stderr.includes("backed up the database"));
  // The next look is at the next start, because it would be a minute later.
  expect(await running.terminate()).toBe(0);
  running = await start();
  await until(async () => openOf("backup_old", await noticesOf(running)) === undefined);
});

test("a start whose migration fails is told by the version that runs after it, and ends with a version that completes the step", async () => {
  const folder = newFolder("failed-migration");
  const preload = join(import.meta.dir, "../upgrade/next-version.ts");
  const start = (version: "this" | "broken" | "next") =>
    startRole({ ...SETTINGS, DATA_DIR: folder, SCHEMA: version }, preload);
  let running = await start("this");
  cleanups.push(() => running.kill());
  const notices = () => noticesOf(running);
  for (const name of ["a", "b"]) {
    const item = { from: `${name}@shop.example`, to: "b@there.test", subject: "Hi", text: "x" };
    expect((await callRole(running, KEY, "POST", "/v1/emails", item)).status).toBe(202);
  }
  expect(openOf("migration_failed", await notices())).toBeUndefined();
  expect(await running.terminate()).toBe(0);

  await expect(start("broken")).rejects.toThrow(/UNIQUE constraint failed/);

  running = await start("this");
  await until(async () => openOf("migration_failed", await notices()) !== undefined);
  const { message } = openOf("migration_failed", await notices()) as Shown;
  expect(message).toMatch(/its change of the database failed\. The error was: .*UNIQUE constraint failed/);
  const mails = () => mailsOf(running, "Migration failed: ");
  await until(async () => (await mails()).length === 1);
  expect((await mails())[0].to).toEqual(["owner@example.com"]);
  expect(await running.terminate()).toBe(0);

  running = await start("next");
  await until(async () => openOf("migration_failed", await notices()) === undefined);
  expect((await notices()).data.map(({ kind }: Shown) => kind)).toContain("migration_failed");
});
