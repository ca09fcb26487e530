import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { bootstrap } from "../../src/flows/account/bootstrap.ts";
import { makeStartLink, START_LINK_MS, useStartToken } from "../../src/flows/account/start-link.ts";
import { listAccounts } from "../../src/store/projects/accounts.ts";
import { BOX_KEY, TEST_KEY } from "../support/api.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { newFolder } from "../support/folder.ts";
import { manualClock } from "../support/manual-clock.ts";
import { type ServiceProcess, serviceProcess } from "../support/process.ts";
import { reason } from "../support/reason.ts";

/** Milliseconds: programs start. */
setDefaultTimeout(60_000);

const MAIN = join(import.meta.dir, "../../src/main.ts");

describe("the token of a start link", () => {
  const clock = manualClock();
  let database: TestDatabase;
  let first = "";
  let accountId = "";
  beforeAll(async () => {
    database = await testDatabase();
    const { db } = database;
    const deps = { db, clock, boxKey: BOX_KEY, generateDkimKey: async () => TEST_KEY };
    first =
      (
        await bootstrap(deps, {
          ownerEmail: "owner@example.com",
          rootApiKey: null,
          defaultTracking: { opens: true, clicks: true },
        })
      ).startToken ?? "";
    accountId = (await listAccounts(db, 1))[0]?.id ?? "";
  });
  afterAll(() => database.remove());

  const make = async () => (await makeStartLink({ db: database.db, clock }, accountId)).token;
  const use = (token: string) => useStartToken(database.db, token, clock.now());

  test("the token of a start link is made by the first start, opens one session with the account-wide key, and is stored hashed", async () => {
    const stored = await database.db.all<{ token_hash: string }>("SELECT token_hash FROM start_tokens");
    expect(stored.map(({ token_hash }) => token_hash)).toEqual([Bun.SHA256.hash(first, "hex")]);
    const key = await database.db.first<{ id: string }>("SELECT id FROM api_keys WHERE sender_id IS NULL");
    expect(await use(first)).toBe(key?.id ?? "");
    expect(await use(first)).toBeNull();
  });

  test("the token of a start link works for fifteen minutes", async () => {
    const [early, late] = [await make(), await make()];
    clock.advance(START_LINK_MS - 1);
    expect(await use(early)).not.toBeNull();
    clock.advance(1);
    expect(await use(late)).toBeNull();
    await make();
    const rows = await database.db.all("SELECT 1 FROM start_tokens");
    // Making one deletes those that are too old.
    expect(rows).toHaveLength(1);
  });

  test("the token of a start link works once, even if several processes get it at the same time", async () => {
    const second = await database.another();
    const token = await make();
    const uses = [database.db, second, database.db, second].map((db) =>
      useStartToken(db, token, clock.now()),
    );
    expect((await Promise.all(uses)).filter((keyId) => keyId !== null)).toHaveLength(1);
    await second.close();
  });

  test.each(["", "x", "'--", "\0", "x".repeat(4000)])("the token of a start link is not %j", async (text) => {
    expect(await use(text)).toBeNull();
  });

  test("the token of a start link needs an account-wide key with every scope, and uses the oldest", async () => {
    const [oldest] = await database.db.all<{ id: string }>("SELECT id FROM api_keys WHERE sender_id IS NULL");
    expect(await use(await make())).toBe(oldest?.id ?? "");
    await database.db.write([{ sql: "UPDATE api_keys SET scopes = '[\"emails:read\"]'", args: [] }]);
    expect(String(await reason(make()))).toContain("postrider keys create");
    await database.db.write([{ sql: "UPDATE api_keys SET scopes = '[]', revoked_at = 1", args: [] }]);
    expect(String(await reason(make()))).toContain("There is no account-wide key");
  });
});

describe("a running service", () => {
  const folder = newFolder("open");
  let service: ServiceProcess;
  beforeAll(async () => {
    service = serviceProcess({ DATA_DIR: folder, ROLES: "api", LOG_LEVEL: "debug" });
    await service.start();
  });
  afterAll(() => service.remove());

  const signIn = (body: object) =>
    fetch(`${service.url}/ui/session`, {
      method: "POST",
      headers: { origin: service.url, "x-postrider-ui": "1", "content-type": "application/json" },
      body: JSON.stringify(body),
    });

  const run = (...args: string[]) => {
    const env = { PATH: Bun.env.PATH ?? "", DATA_DIR: folder, PORT: new URL(service.url).port };
    const child = Bun.spawnSync([process.execPath, MAIN, ...args], { cwd: folder, env });
    return { code: child.exitCode, stdout: child.stdout.toString(), stderr: child.stderr.toString() };
  };

  /** Returns the token of the link that the first start printed. */
  const printed = (): string =>
    /Open http:\/\/localhost:\d+\/start#(\w+)/.exec(service.output().stdout)?.[1] ?? "";

  test("a running service has printed a link at its first start, also with ROOT_API_KEY, which signs in once", async () => {
    const token = printed();
    expect(token).toHaveLength(32);
    const opened = await signIn({ token });
    expect(opened.status).toBe(204);
    const cookie = opened.headers.get("set-cookie")?.split(";")[0] ?? "";
    const me = await fetch(`${service.url}/ui/session`, { headers: { cookie } });
    expect(await me.json()).toMatchObject({ key: { senderId: null, scopes: [] } });
    const again = await signIn({ token });
    expect([again.status, await again.text()]).toEqual([401, expect.stringContaining("postrider open")]);
  });

  test("a running service takes a link that `postrider open` makes next to it", async () => {
    const { code, stdout, stderr } = run("open");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const { url, expiresAt } = JSON.parse(stdout);
    const [page, token = ""] = url.split("#");
    expect(page).toBe(`http://localhost:${new URL(service.url).port}/start`);
    expect(Number.isNaN(Date.parse(expiresAt))).toBe(false);
    expect((await signIn({ token })).status).toBe(204);
  });

  test("a running service takes a key or a token, and not both", async () => {
    expect((await signIn({})).status).toBe(422);
    expect((await signIn({ key: service.key, token: "x" })).status).toBe(422);
    expect((await signIn({ key: service.key })).status).toBe(204);
  });

  test("a running service writes no token, key or cookie of a session to its log", async () => {
    const [token, cookie] = [printed(), (await signIn({ key: service.key })).headers.get("set-cookie") ?? ""];
    const { stdout, stderr } = service.output();
    expect(stdout.split(token)).toHaveLength(2);
    for (const secret of [service.key, token, cookie.split("=")[1]?.split(";")[0] ?? ""])
      expect(stderr).not.toContain(secret);
    expect(stderr).toContain("/ui/session");
  });

  test("a running service prints no link at a later start", async () => {
    await service.terminate();
    await service.start();
    expect(service.output().stdout).not.toContain("start#");
    expect(service.output().stdout).toContain("postrider open");
  });
});

test("`postrider open` without a database says what makes one", async () => {
  const folder = newFolder("nothing");
  const env = { PATH: Bun.env.PATH ?? "", DATA_DIR: folder };
  const child = Bun.spawnSync([process.execPath, MAIN, "open"], { cwd: folder, env });
  expect([child.exitCode, child.stderr.toString()]).toEqual([
    70,
    expect.stringContaining("start the service"),
  ]);
});
