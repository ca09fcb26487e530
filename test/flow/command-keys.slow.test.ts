import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import Database from "libsql";
import { captureService, onTerminal, postrider, program, statusWith } from "./command-program.ts";
import { newFolder } from "../support/folder.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(90_000);

const LIMIT_MS = 90_000;
const { service, env, folder } = captureService();

beforeAll(() => service.start(), LIMIT_MS);
afterAll(async () => {
  await service.remove();
  rmSync(folder, { recursive: true, force: true });
});

async function createKey(...flags: string[]): Promise<Record<string, unknown>> {
  const { code, json, stderr } = await postrider(["keys", "create", ...flags], env);
  expect([code, stderr]).toEqual([0, ""]);
  return json()[0] ?? {};
}

describe("keys", () => {
  test("made and revoked by the command line take effect in the running service from the next request on", async () => {
    const { id, secret, ...key } = await createKey("--name", "shell");
    expect(key).toMatchObject({ name: "shell", senderId: null, scopes: [], revokedAt: null });
    expect(await statusWith(service.url, String(secret))).toBe(200);
    const headers = { authorization: `Bearer ${service.key}` };
    const answer = await fetch(`${service.url}/v1/audit-log?actor=cli`, { headers });
    const trail = (await answer.json()) as { data: unknown[] };
    expect(trail.data[0]).toMatchObject({ action: "api_key.create", target: { id, name: "shell" } });
    const { code, json } = await postrider(["keys", "revoke", String(id)], env);
    expect([code, json()]).toEqual([0, [{ id, revoked: true }]]);
    expect(await statusWith(service.url, String(secret))).toBe(401);
    // The second time it is revoked already, which is the requested state.
    expect((await postrider(["keys", "revoke", String(id)], env)).code).toBe(0);
  });

  test("keys are for a project, by its external id, and for the named scopes", async () => {
    const key = await createKey(
      "--name",
      "ci",
      "--sender",
      "default",
      "--scopes",
      "emails:send, emails:read",
    );
    expect(key).toMatchObject({ senderExternalId: "default", scopes: ["emails:send", "emails:read"] });
    expect(await statusWith(service.url, String(key.secret), "/v1/emails")).toBe(200);
    expect(await statusWith(service.url, String(key.secret), "/v1/templates")).toBe(403);
  });

  test("keys are listed without a secret or its hash, newest first, and no more than requested", async () => {
    const [first, second] = [await createKey("--name", "a"), await createKey("--name", "b")];
    const all = await postrider(["keys", "list"], env);
    expect(all.json().slice(0, 2)).toMatchObject([{ id: second.id }, { id: first.id }]);
    for (const { secret } of [first, second]) expect(all.stdout).not.toContain(String(secret));
    expect(all.stdout).not.toMatch(/secret|hash/i);
    const one = await postrider(["keys", "list", "--limit", "1"], env);
    expect(one.json()).toEqual(all.json().slice(0, 1));
    expect(one.stderr).toContain("--limit");
  });

  test.each<[string, string[], number, string]>([
    [
      "an unknown scope",
      ["create", "--name", "x", "--scopes", "emails:fly"],
      1,
      "no such scope: emails:fly; there are",
    ],
    ["an empty list of scopes", ["create", "--name", "x", "--scopes", ""], 64, "--scopes names none"],
    ["a list of scopes without any", ["create", "--name", "x", "--scopes", " , "], 64, "--scopes names none"],
    ["an unknown project", ["create", "--name", "x", "--sender", "nobody"], 1, "no such project: nobody"],
    ["a name over 200 characters", ["create", "--name", "x".repeat(201)], 1, "name"],
    ["no name", ["create"], 64, "missing: --name NAME"],
    ["an unknown key", ["revoke", "key_00000000000000000000000000"], 1, "No such API key."],
    ["no id", ["revoke"], 64, "missing: ID"],
    ["two ids", ["revoke", "a", "b"], 64, "too many arguments: b"],
    ["an unknown account", ["list", "--account", "acc_0"], 1, "no such account: acc_0"],
    ["a limit over the limit", ["list", "--limit", "10001"], 64, "from 1 to 10000"],
    ["a limit of nothing", ["list", "--limit", "0"], 64, "from 1 to 10000"],
    ["an unknown flag", ["list", "--secret"], 64, "Unknown option '--secret'"],
  ])("%s is refused with the reason", async (_case, args, code, says) => {
    const ran = await postrider(["keys", ...args], env);
    expect([ran.code, ran.stdout]).toEqual([code, ""]);
    expect(ran.stderr).toStartWith("postrider: ");
    expect(ran.stderr).toContain(says);
  });

  test("keys may have their secret written into a new file that only its owner can read, and printed nowhere", async () => {
    const file = join(newFolder("command"), "postrider.key");
    const key = await createKey("--name", "kept", "--out", file);
    const secret = readFileSync(file, "utf8").trim();
    expect([key.secret, key.secretFile, statSync(file).mode & 0o777]).toEqual([undefined, file, 0o600]);
    expect(await statusWith(service.url, secret)).toBe(200);
    const before = (await postrider(["keys", "list"], env)).json().length;
    const again = await postrider(["keys", "create", "--name", "kept", "--out", file], env);
    expect([again.code, readFileSync(file, "utf8").trim()]).toEqual([1, secret]);
    expect((await postrider(["keys", "list"], env)).json()).toHaveLength(before);
    // A refused request leaves no empty file behind.
    const other = `${file}.2`;
    await postrider(["keys", "create", "--name", "x", "--scopes", "no", "--out", other], env);
    expect(existsSync(other)).toBe(false);
  });

  test("on a terminal, keys are a table in which a name cannot send control sequences", async () => {
    await createKey("--name", "\u001b[2Jwiped\nrow");
    const shown = await onTerminal(["keys", "list"], env);
    expect(shown).toMatch(/^id +name +prefix +last4 +project/);
    expect(shown).toContain("\ufffd[2Jwiped row");
    expect(shown).not.toContain("\u001b[2J");
    expect(await onTerminal(["keys", "list", "--json"], env)).toStartWith("{");
    expect((await postrider(["keys", "list", "--no-json"], env)).stdout).toMatch(/^id +name/);
  });

  test("keys are made as soon as another process releases the database", async () => {
    const database = new Database(join(folder, "postrider.db"), { timeout: 5000 });
    database.exec("BEGIN IMMEDIATE");
    const waiting = Promise.withResolvers<void>();
    const made = program(
      ["keys", "create", "--name", "patient"],
      { ...env, LOG_LEVEL: "debug" },
      { onError: (text) => void (text.includes("locked by another process") && waiting.resolve()) },
    );
    await Promise.race([waiting.promise, made.then(() => Promise.reject(new Error("it did not wait")))]);
    database.exec("COMMIT");
    database.close();
    expect([(await made).code, (await made).json()[0]?.name]).toEqual([0, "patient"]);
  });
});

describe("projects", () => {
  test("projects are made with plan and tier, or with the settings' defaults, and listed", async () => {
    const wanted = [
      "--name",
      "Newsletter",
      "--external-id",
      "news",
      "--plan",
      "free",
      "--trust-tier",
      "high",
    ];
    const made = (await postrider(["senders", "create", ...wanted], env)).json();
    expect(made).toMatchObject([{ externalId: "news", plan: "free", trustTier: "high" }]);
    const plain = (await postrider(["senders", "create", "--name", "Größe & Co"], env)).json();
    expect(plain).toMatchObject([{ name: "Größe & Co", plan: "pro", trustTier: "basic" }]);
    const listed = (await postrider(["senders", "list"], env)).json();
    expect(listed.map(({ id }) => id).slice(0, 2)).toEqual([plain[0]?.id, made[0]?.id]);
    const key = await createKey("--name", "news", "--sender", "news");
    expect(await statusWith(service.url, String(key.secret), "/v1/emails")).toBe(200);
  });

  test.each<[string, string[], number, string]>([
    ["an unknown plan", ["--name", "x", "--plan", "gold"], 1, "--plan: one of free, pro, unlimited"],
    ["an unknown tier", ["--name", "x", "--trust-tier", "none"], 1, "--trust-tier: one of new, basic"],
    ["an external id that is taken", ["--name", "x", "--external-id", "default"], 1, "default"],
    ["an external id like an id", ["--name", "x", "--external-id", "snd_1"], 1, 'must not start with "snd_"'],
    ["an external id with spaces", ["--name", "x", "--external-id", "a b"], 1, "externalId"],
    ["no name", [], 64, "missing: --name NAME"],
  ])("%s is refused", async (_case, flags, code, says) => {
    const ran = await postrider(["senders", "create", ...flags], env);
    expect([ran.code, ran.stdout]).toEqual([code, ""]);
    expect(ran.stderr).toContain(says);
  });
});

describe("the database", () => {
  test("the database is not created by a query, and its absence is reported", async () => {
    const empty = newFolder("command");
    const ran = await postrider(["keys", "list"], { DATA_DIR: empty });
    expect([ran.code, existsSync(join(empty, "postrider.db"))]).toEqual([70, false]);
    expect(ran.stderr).toContain("start the service, or run postrider migrate");
    await postrider(["migrate"], { DATA_DIR: empty });
    const noAccount = await postrider(["keys", "list"], { DATA_DIR: empty });
    expect([noAccount.code, noAccount.stderr]).toEqual([1, expect.stringContaining("no account yet")]);
  });

  test("the database with two accounts requires a choice", async () => {
    const database = new Database(join(folder, "postrider.db"), { timeout: 5000 });
    const other = "acc_7zzzzzzzzzzzzzzzzzzzzzzzzz";
    database.exec(
      `INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('${other}', 'B', 'b@b.test', 1)`,
    );
    try {
      const asked = await postrider(["keys", "list"], env);
      expect([asked.code, asked.stderr]).toEqual([64, expect.stringContaining(other)]);
      const named = await postrider(["keys", "list", "--account", other], env);
      expect([named.code, named.stdout]).toEqual([0, ""]);
    } finally {
      database.exec(`DELETE FROM accounts WHERE id = '${other}'`);
      database.close();
    }
  });

  test("the database on an unreachable server is exit code 69", async () => {
    const { code, stderr } = await postrider(["keys", "list"], { DATABASE_URL: "http://127.0.0.1:1" });
    expect([code, stderr]).toEqual([69, expect.stringMatching(/^postrider: .+/)]);
  });
});
