import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import Database from "libsql";
import { newFolder } from "../support/folder.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(90_000);

const MAIN = join(import.meta.dir, "../../src/main.ts");

async function run(args: string[], env: Record<string, string> = {}) {
  const child = Bun.spawn([process.execPath, MAIN, ...args], {
    cwd: newFolder("command"),
    env: { PATH: Bun.env.PATH ?? "", ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { code: await child.exited, stdout, stderr };
}

test("invalid settings stop the start with exit code 78 and every problem in one message", async () => {
  const { code, stderr } = await run(["serve"], { PORT: "x", ROLES: "cook", DELIVERY: "pigeon" });
  expect(code).toBe(78);
  for (const name of ["PORT", "ROLES", "DELIVERY"]) expect(stderr).toContain(name);
});

test("an unknown command is exit code 64, and help needs no settings", async () => {
  expect((await run(["fly"])).code).toBe(64);
  const help = await run(["--help"], { PORT: "x" });
  expect({ code: help.code, said: help.stdout.includes("migrate status") }).toEqual({ code: 0, said: true });
});

test("migrate upgrades a new file, and says so", async () => {
  const env = { DATA_DIR: newFolder("migrate") };
  // If a program reads its output, such as this test, it is JSON.
  expect(JSON.parse((await run(["migrate"], env)).stdout).applied).toContain(1);
  expect(JSON.parse((await run(["migrate"], env)).stdout).applied).toEqual([]);
  const [first = ""] = (await run(["migrate", "status"], env)).stdout.split("\n");
  expect(JSON.parse(first)).toEqual({
    version: 1,
    name: "initial",
    appliedAt: expect.stringMatching(/^\d{4}-/),
  });
});

test("a program older than the database changes nothing in it", async () => {
  const env = { DATA_DIR: newFolder("newer") };
  await run(["migrate"], env);
  const db = new Database(join(env.DATA_DIR, "postrider.db"));
  db.exec(
    "INSERT INTO schema_migrations (version, name, checksum, works_with, applied_at) VALUES (9999, 'x', 'x', 9999, 1)",
  );
  db.close();
  for (const args of [["serve"], ["migrate"], ["keys", "create", "--name", "old"], ["senders", "list"]]) {
    const { code, stderr } = await run(args, env);
    expect({ args, code, stderr }).toEqual({
      args,
      code: 78,
      stderr: expect.stringContaining(
        "the database is at schema 9999, which needs a program with schema 9999",
      ),
    });
  }
});

test("a process with only workers runs until it is stopped", async () => {
  const folder = newFolder("worker");
  const child = Bun.spawn([process.execPath, MAIN, "serve"], {
    cwd: folder,
    env: { PATH: Bun.env.PATH ?? "", ROLES: "worker", HOST: "127.0.0.1", PORT: "0", DATA_DIR: folder },
    stdout: "pipe",
    stderr: "ignore",
  });
  // Its banner says that it has started. If it had nothing to do, it would end right after it, and not answer.
  let banner = "";
  for await (const chunk of child.stdout) {
    banner += new TextDecoder().decode(chunk);
    if (banner.includes("delivery")) break;
  }
  const address = /health +(\S+)\/readyz/.exec(banner)?.[1];
  expect((await fetch(`http://${address}/livez`)).status).toBe(200);
  expect(child.exitCode).toBeNull();
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
});

test("a log that cannot be written, as on a full disk, does not end the process", async () => {
  const folder = newFolder("log");
  const child = Bun.spawn(["sh", "-c", 'exec "$0" "$1" serve 2>/dev/full', process.execPath, MAIN], {
    cwd: folder,
    env: { PATH: Bun.env.PATH ?? "", HOST: "127.0.0.1", PORT: "0", ROLES: "api", LOG_LEVEL: "debug" },
    stdout: "pipe",
  });
  let banner = "";
  for await (const chunk of child.stdout) {
    banner += new TextDecoder().decode(chunk);
    if (banner.includes("delivery")) break;
  }
  const url = `http://127.0.0.1:${/localhost:(\d+)/.exec(banner)?.[1]}`;
  // Each request logs a line. The second one exceeds what the full stream accepts.
  for (const _ of [1, 2]) expect((await fetch(`${url}/v1/emails`)).status).toBe(401);
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
});

test("a command reports in one line that its output cannot be written", async () => {
  const child = Bun.spawn(["sh", "-c", 'exec "$0" "$1" config >/dev/full', process.execPath, MAIN], {
    cwd: newFolder("command"),
    env: { PATH: Bun.env.PATH ?? "" },
    stderr: "pipe",
  });
  const stderr = await new Response(child.stderr).text();
  expect([await child.exited, stderr]).toEqual([
    70,
    "postrider: standard output cannot be written (ENOSPC)\n",
  ]);
});
