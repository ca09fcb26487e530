import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "libsql";
import { newFolder } from "../support/folder.ts";
import { serviceProcess } from "../support/process.ts";
import { captureService, postrider, program, statusWith } from "./command-program.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */

const LIMIT_MS = 180_000;
setDefaultTimeout(LIMIT_MS);
/** Clients that send in parallel during the copy, and messages that each has sent before it begins. */
const CLIENTS = 4;
const HEAD_START = 25;
const { service, env, folder } = captureService();

beforeAll(() => service.start(), LIMIT_MS);
afterAll(async () => {
  await service.remove();
  rmSync(folder, { recursive: true, force: true });
});

interface Load {
  /** Ids answered with 202 so far, in the order of their answers. */
  answered: string[];
  /** Resolves once there are that many. */
  reached(count: number): Promise<void>;
  stop(): Promise<void>;
}

/** Clients that send one message after another until they are stopped. */
function load(url: string, key: string): Load {
  const answered: string[] = [];
  let goal = { count: Number.POSITIVE_INFINITY, resolve: (): void => undefined };
  let running = true;
  const client = async (): Promise<void> => {
    while (running) {
      const answer = await fetch(`${url}/v1/emails`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${key}`,
          "content-type": "application/json",
          "x-service-product": "default",
        },
        body: JSON.stringify({
          from: { email: "hello@onboarding.postrider.localhost" },
          to: [{ email: "delivered@simulator.postrider.localhost" }],
          subject: "Load",
          text: "x".repeat(5000),
        }),
      });
      const { id } = (await answer.json()) as { id: string };
      answered.push(id);
      if (answered.length >= goal.count) goal.resolve();
    }
  };
  const clients = Array.from({ length: CLIENTS }, client);
  return {
    answered,
    async reached(count) {
      const { promise, resolve } = Promise.withResolvers<void>();
      goal = { count, resolve };
      if (answered.length >= count) resolve();
      // If a client ends early, it has failed, and its error is thrown.
      await Promise.race([promise, Promise.all(clients)]);
    },
    async stop() {
      running = false;
      await Promise.all(clients);
    },
  };
}

function ask<Row>(file: string, sql: string): Row[] {
  const database = new Database(file);
  try {
    return database.prepare(sql).all([]) as Row[];
  } finally {
    database.close();
  }
}

describe("backup", () => {
  test("a backup of a service under load is complete, contains everything answered before it, and a service starts from it", async () => {
    const clients = load(service.url, service.key);
    await clients.reached(CLIENTS * HEAD_START);
    const before = [...clients.answered];
    const restored = newFolder("command");
    const file = join(restored, "postrider.db");
    const ran = await program(["backup", file, "--with-key"], env);
    const during = clients.answered.length - before.length;
    await clients.stop();
    expect([ran.code, ran.json()]).toEqual([
      0,
      [{ file, bytes: statSync(file).size, keyFile: `${file}.key`, masterKey: join(folder, "master.key") }],
    ]);
    // Otherwise the copy was not made under load.
    expect(during).toBeGreaterThan(0);

    expect(ask<{ integrity_check: string }>(file, "PRAGMA integrity_check")).toMatchObject([
      { integrity_check: "ok" },
    ]);
    expect(ask(file, "PRAGMA foreign_key_check")).toEqual([]);
    const messages = new Set(ask<{ id: string }>(file, "SELECT id FROM messages").map(({ id }) => id));
    expect(before.filter((id) => !messages.has(id))).toEqual([]);
    // One moment: each message has its recipient and its content, and there are no more than were sent.
    const lone = "SELECT id FROM messages WHERE id NOT IN (SELECT message_id FROM recipients)";
    expect(ask(file, lone)).toEqual([]);
    expect(messages.size).toBeLessThanOrEqual(clients.answered.length);
    expect([statSync(file).mode & 0o777, statSync(`${file}.key`).mode & 0o777]).toEqual([0o600, 0o600]);
    expect(existsSync(`${file}.part`)).toBe(false);

    const key = readFileSync(`${file}.key`, "utf8");
    expect(key).toBe(readFileSync(join(folder, "master.key"), "utf8"));
    writeFileSync(join(restored, "master.key"), key, { mode: 0o600 });
    const second = serviceProcess({
      DATA_DIR: restored,
      DELIVERY: "capture",
      SERVICE_DOMAIN: "postrider.localhost",
    });
    try {
      await second.start();
      const [last = ""] = before.slice(-1);
      const headers = { authorization: `Bearer ${service.key}`, "x-service-product": "default" };
      const record = await fetch(`${second.url}/v1/emails/${last}`, { headers });
      expect([record.status, await record.json()]).toMatchObject([200, { id: last, subject: "Load" }]);
      expect(await statusWith(second.url, service.key)).toBe(200);
      const more = load(second.url, service.key);
      await more.reached(CLIENTS);
      await more.stop();
    } finally {
      await second.remove();
      rmSync(restored, { recursive: true, force: true });
    }
  });

  test("without the key warns that the key is not in it, and says where the key is", async () => {
    const file = join(newFolder("command"), "copy.db");
    const ran = await postrider(["backup", file], env);
    const masterKey = join(folder, "master.key");
    expect([ran.code, ran.json()]).toMatchObject([0, [{ file, keyFile: null, masterKey }]]);
    expect(ran.stderr).toContain("THE MASTER KEY IS NOT IN THIS BACKUP");
    expect(ran.stderr).toContain(masterKey);
    expect(existsSync(`${file}.key`)).toBe(false);
    const given = await postrider(["backup", `${file}.2`], { ...env, MASTER_KEY: "m".repeat(32) });
    expect([given.code, given.json()]).toMatchObject([0, [{ masterKey: "MASTER_KEY" }]]);
    expect(given.stderr).toContain("the setting MASTER_KEY");
    expect(given.stdout + given.stderr).not.toContain("mmmm");
  });

  test("restored without its master key does not start, and makes no new key", async () => {
    const restored = newFolder("command");
    await postrider(["backup", join(restored, "postrider.db")], env);
    const ran = await postrider(["serve"], { ...env, DATA_DIR: restored });
    const lost = `there is no master key at ${join(restored, "master.key")}`;
    expect([ran.code, ran.stderr]).toEqual([78, expect.stringContaining(lost)]);
    expect(existsSync(join(restored, "master.key"))).toBe(false);
  });

  test.each<[string, string, string[]]>([
    ["a FILE", "copy.db", []],
    ["the key of FILE", "copy.db.key", ["--with-key"]],
    ["a FILE.part, which another backup may be writing", "copy.db.part", []],
  ])("neither overwrites nor deletes %s that exists", async (_case, name, flags) => {
    const target = newFolder("command");
    writeFileSync(join(target, name), "precious");
    const ran = await postrider(["backup", join(target, "copy.db"), ...flags], env);
    expect([ran.code, ran.stderr]).toEqual([1, expect.stringContaining(`${name} exists`)]);
    expect([readdirSync(target), readFileSync(join(target, name), "utf8")]).toEqual([[name], "precious"]);
  });

  test("backup leaves nothing behind if the copy fails", async () => {
    const source = newFolder("command");
    writeFileSync(join(source, "postrider.db"), "this is no database, whatever its name says".repeat(100));
    const target = newFolder("command");
    writeFileSync(join(source, "master.key"), "0".repeat(64));
    const ran = await postrider(["backup", join(target, "copy.db"), "--with-key"], { DATA_DIR: source });
    expect([ran.code, ran.stdout, readdirSync(target)]).toEqual([70, "", []]);
    expect(ran.stderr).toContain("holds something else");
  });

  test("backup leaves nothing behind if the copy cannot be finished, and names the file", async () => {
    const target = newFolder("command");
    const file = join(target, "copy.db");
    // Limits our files to that many blocks of 512 bytes.
    const limited = ["sh", "-c", 'ulimit -f 32; exec "$@"', "sh"];
    const ran = await program(["backup", file], env, {}, limited);
    expect([ran.code, ran.stdout, readdirSync(target)]).toEqual([69, "", []]);
    expect(ran.stderr).toContain(`${file}.part`);
  });

  test.each<[string, Record<string, string>, string[], number, string]>([
    ["a server", { DATABASE_URL: "libsql://db.example" }, ["x.db"], 1, "a server's"],
    ["a replica", { ...env, DATABASE_SYNC_URL: "libsql://db.example" }, ["x.db"], 1, "a server's"],
    ["nothing", { DATA_DIR: "/nowhere" }, ["x.db"], 69, "no database at /nowhere"],
    [
      "a key that is a setting",
      { ...env, MASTER_KEY: "m".repeat(32) },
      ["x.db", "--with-key"],
      1,
      "MASTER_KEY",
    ],
    ["no FILE", env, [], 64, "missing: FILE"],
  ])("a backup of %s is refused with the reason", async (_case, settings, args, code, says) => {
    const ran = await postrider(["backup", ...args], settings);
    expect([ran.code, ran.stdout]).toEqual([code, ""]);
    expect(ran.stderr).toContain(says);
  });
});
