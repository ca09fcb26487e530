import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { newFolder } from "../support/folder.ts";
import { type Healthy, startHealthy } from "../support/healthy.ts";
import { onTerminal, postrider } from "./command-program.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
const LIMIT_MS = 180_000;
/** Number of checks that doctor makes for a sound service. A new check adds one here. */
const CHECKS = 45;
setDefaultTimeout(LIMIT_MS);
let healthy: Healthy;
beforeAll(async () => {
  healthy = await startHealthy();
}, LIMIT_MS);
afterAll(() => healthy.stop());

test("doctor exits with 0 for a sound running service, with a line for each check", async () => {
  const args = ["doctor", "--egress", `127.0.0.1:${healthy.greeter.port}`];
  const { code, json, stderr } = await postrider(args, healthy.settings);
  const lines = json();
  // The command does not know the authority of the tests.
  expect(lines.filter(({ status }) => status !== "ok").map(({ name }) => name)).toEqual(["unsubscribe page"]);
  expect([code, stderr, lines.length]).toEqual([0, "", CHECKS]);
  const shown = await onTerminal(args, healthy.settings);
  expect(shown).toMatch(
    /^status +check\nok +variables +No variable looks like a misspelt setting\.\nok +public url +https:\/\/api\.example\.com:\d+\n/,
  );
  const heading = 1;
  expect(shown.trimEnd().split("\n")).toHaveLength(heading + CHECKS);
});

test("doctor --url checks another installation from outside, and nothing of this machine", async () => {
  const DATA_DIR = join(newFolder("remote"), "none");
  const ran = await postrider(["doctor", "--url", healthy.service.url], { DATA_DIR });
  expect(ran.json().map(({ status, name }) => `${status} ${name}`)).toEqual(["ok unsubscribe page"]);
  const env = { DATA_DIR, SERVICE_DOMAIN: "nobody.test", DNS_SERVERS: healthy.service.dns.address };
  const both = await postrider(["doctor", "--url", healthy.service.url], env);
  expect([both.code, both.json().at(-1)?.message]).toEqual([
    1,
    "nobody.test has no MX host with an address.",
  ]);
});

test("doctor exits with 1 if a check fails, and says how to repair it", async () => {
  await healthy.redis.command("config", "set", "maxmemory-policy", "allkeys-lru");
  const { DNS_SERVERS: _servers, ...settings } = healthy.settings;
  const env = {
    ...settings,
    DNS_SERVERS: "127.0.0.1:1",
    PUBLIC_URL: "http://localhost:3000",
    MASTER_KEY: "k".repeat(40),
  };
  const { code, json } = await postrider(["doctor"], env);
  const status = new Map(json().map((line) => [line.name, line.status]));
  expect(code).toBe(1);
  expect(
    ["redis", "our zone", "our delegation", "master key", "public url", "egress", "disk"].map((name) =>
      status.get(name),
    ),
  ).toEqual(["fail", undefined, "fail", "fail", "warn", "warn", "ok"]);
  expect(json().filter((line) => line.status !== "ok" && typeof line.fix !== "string")).toEqual([]);
});

test("doctor warns and exits with 0 on a first try; if there is no database, it makes none and exits with 1", async () => {
  const folder = newFolder("command");
  const DATA_DIR = join(folder, "data");
  const ran = await postrider(["doctor"], { DATA_DIR });
  expect([ran.code, ran.json().find(({ name }) => name === "database")?.message]).toEqual([
    1,
    `there is no database at ${DATA_DIR}/postrider.db`,
  ]);
  expect(await Bun.file(join(DATA_DIR, "postrider.db")).exists()).toBe(false);
  expect((await postrider(["migrate"], { DATA_DIR })).code).toBe(0);
  const after = await postrider(["doctor"], { DATA_DIR });
  expect([after.code, after.json().filter(({ status }) => status === "fail")]).toEqual([0, []]);
  rmSync(folder, { recursive: true });
});

test.each([
  ["--egress", "a b"],
  ["--egress", "host:0"],
  ["--egress", "host:65536"],
  ["--clock", "example.com"],
  ["--clock", "ftp://example.com"],
])("doctor %s %p is wrong usage", async (flag, value) => {
  const ran = await postrider(["doctor", flag, value]);
  expect([ran.code, ran.stdout]).toEqual([64, ""]);
  expect(ran.stderr).toContain(flag);
});
