import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newFolder } from "../support/folder.ts";
import { serviceProcess } from "../support/process.ts";
import { captureService, type Env, postrider } from "./command-program.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(180_000);

const SETTINGS = { DELIVERY: "capture", SERVICE_DOMAIN: "postrider.localhost" };
const { service, env, folder } = captureService();
/** An encrypted backup from before the scheduled message was due, and that message. */
let backup = "";
let scheduled = "";
let dueAt = 0;

async function send(url: string, over: object = {}): Promise<string> {
  const answer = await fetch(`${url}/v1/emails`, {
    method: "POST",
    headers: headers({ "content-type": "application/json" }),
    body: JSON.stringify({
      from: "hello@any.example",
      to: "ana@example.com",
      subject: "Hi",
      text: "x",
      ...over,
    }),
  });
  return ((await answer.json()) as { id: string }).id;
}

const headers = (more = {}) => ({
  authorization: `Bearer ${service.key}`,
  "x-service-product": "default",
  ...more,
});

async function recordOf(
  url: string,
  id: string,
): Promise<{ status: string; recipients: { reason: string | null }[] }> {
  return (await fetch(`${url}/v1/emails/${id}`, { headers: headers() })).json() as never;
}

async function arrives(url: string, id: string, status: string): Promise<void> {
  while ((await recordOf(url, id)).status !== status) await Bun.sleep(50);
}

beforeAll(async () => {
  await service.start();
  backup = join(newFolder("command"), "one.age");
  // The program is built by now, so that the backup is made in time.
  await postrider(["--version"]);
  dueAt = Date.now() + 8000;
  scheduled = await send(service.url, { scheduledAt: new Date(dueAt).toISOString() });
  const ran = await postrider(["backup", backup, "--encrypt"], env);
  expect([ran.code, readdirSync(join(backup, ".."))]).toEqual([0, ["one.age"]]);
}, 180_000);
afterAll(() => service.remove());

/** Restores the backup into a new folder. */
async function restored(over: Env = {}) {
  const data = newFolder("command");
  const own = { DATA_DIR: data, ...over };
  return { data, own, ran: await postrider(["restore", backup], own) };
}

const masterKey = () => readFileSync(join(folder, "master.key"), "utf8").trim();

test("a restored service sends what is new, and nothing that was due in the backup until it is released", async () => {
  const { data, own, ran } = await restored({ MASTER_KEY: masterKey() });
  expect([ran.code, ran.json()]).toMatchObject([
    0,
    [{ held: { recipients: 1, pushes: 0, firstDueAt: dueAt } }],
  ]);
  expect(statSync(join(data, "postrider.db")).mode & 0o777).toBe(0o600);
  while (Date.now() < dueAt) await Bun.sleep(100);
  await arrives(service.url, scheduled, "delivered");
  const second = serviceProcess({ ...SETTINGS, ...own });
  try {
    await second.start();
    await arrives(second.url, await send(second.url), "delivered");
    expect((await recordOf(second.url, scheduled)).status).toBe("accepted");
    const doctor = await postrider(["doctor", "--json"], { ...SETTINGS, ...own });
    expect(doctor.stdout).toContain("A restore holds 1 recipients and 0 webhook pushes");
    const shown = await postrider(["release-held"], own);
    expect(shown.json()).toMatchObject([{ recipients: 1, released: false }]);
    expect((await recordOf(second.url, scheduled)).status).toBe("accepted");
    const before = new Date(dueAt).toISOString();
    expect((await postrider(["release-held", "--before", before, "--yes"], own)).json()).toMatchObject([
      { recipients: 0 },
    ]);
    await postrider(["release-held", "--yes"], own);
    await arrives(second.url, scheduled, "delivered");
    expect((await postrider(["doctor", "--json"], { ...SETTINGS, ...own })).stdout).not.toContain(
      "restore holds",
    );
  } finally {
    await second.remove();
  }
});

test("dropped mail is failed and is not sent", async () => {
  const { own } = await restored({ MASTER_KEY: masterKey() });
  await postrider(["release-held", "--drop", "--yes"], own);
  const second = serviceProcess({ ...SETTINGS, ...own });
  try {
    await second.start();
    const { status, recipients } = await recordOf(second.url, scheduled);
    expect([status, recipients[0]?.reason]).toEqual(["failed", "dropped_after_restore"]);
  } finally {
    await second.remove();
  }
});

test("a backup is restored with the key next to it, which is then in DATA_DIR", async () => {
  writeFileSync(`${backup}.key`, `${masterKey()}\n`);
  const { data, ran } = await restored();
  rmSync(`${backup}.key`);
  expect([ran.code, readFileSync(join(data, "master.key"), "utf8").trim()]).toEqual([0, masterKey()]);
});

test.each<[string, () => Env, number, string]>([
  ["no key", () => ({}), 78, "there is no master key: set MASTER_KEY"],
  [
    "another key",
    () => ({ MASTER_KEY: "x".repeat(40) }),
    69,
    "cannot be opened with this master key, or is damaged",
  ],
])("a backup is not restored with %s, and nothing is left behind", async (_, key, code, says) => {
  const { data, ran } = await restored(key());
  expect([ran.code, ran.stderr]).toEqual([code, expect.stringContaining(says)]);
  expect(readdirSync(data)).toEqual([]);
});

test("a backup is not restored over a database, and one that was changed is refused", async () => {
  const over = await postrider(["restore", backup], { DATA_DIR: folder });
  expect([over.code, over.stderr]).toEqual([
    1,
    expect.stringContaining("postrider.db exists: stop the service"),
  ]);
  const bytes = readFileSync(backup);
  const changed = join(newFolder("command"), "changed.age");
  bytes[bytes.length - 1000] = (bytes[bytes.length - 1000] ?? 0) ^ 1;
  writeFileSync(changed, bytes);
  const data = newFolder("command");
  const ran = await postrider(["restore", changed], { DATA_DIR: data, MASTER_KEY: masterKey() });
  expect([ran.code, readdirSync(data)]).toEqual([69, []]);
});

test("a plain backup can be restored, too", async () => {
  const plain = join(newFolder("command"), "plain.db");
  await postrider(["backup", plain, "--with-key"], env);
  const data = newFolder("command");
  expect((await postrider(["restore", plain], { DATA_DIR: data })).code).toBe(0);
  expect(existsSync(join(data, "master.key"))).toBe(true);
});

test("with BACKUP_EVERY a worker makes encrypted backups and keeps the newest", async () => {
  const data = newFolder("command");
  const own = { ...SETTINGS, DATA_DIR: data, BACKUP_EVERY: "1d", BACKUP_KEEP: "2" };
  mkdirSync(join(data, "backups"));
  const old = ["2026-01-01", "2026-01-02"].map((day) => `postrider-${day}T00-00-00Z.age`);
  for (const name of [...old, "mine.age", "postrider-2026-01-03T00-00-00Z.age.part"])
    writeFileSync(join(data, "backups", name), "");
  const second = serviceProcess(own);
  try {
    await second.start();
    while (!second.output().stderr.concat(second.output().stdout).includes("backed up the database"))
      await Bun.sleep(50);
    const names = readdirSync(join(data, "backups")).sort();
    expect(names).toEqual(["mine.age", old[1] ?? "", expect.stringMatching(/^postrider-20\d\d-.*Z\.age$/)]);
    const found = await postrider(["doctor", "--json"], own);
    expect(found.stdout).toContain("The last good backup is 0.0 hours old.");
  } finally {
    await second.remove();
  }
});
