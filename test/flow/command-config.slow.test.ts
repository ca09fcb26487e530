import { expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { SETTINGS } from "../../src/config/settings.ts";
import { onTerminal, postrider } from "./command-program.ts";
import { newFolder } from "../support/folder.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(90_000);

async function shown(env: Record<string, string>): Promise<Map<unknown, Record<string, unknown>>> {
  const { code, json, stderr } = await postrider(["config"], env);
  expect([code, stderr]).toEqual([0, ""]);
  return new Map(json().map((row) => [row.name, row]));
}

test("config shows every setting of the table, with its value if it has one", async () => {
  const rows = await shown({});
  const names = SETTINGS.filter(({ name }) => !name.includes("<")).map(({ name }) => name);
  expect(names.filter((name) => !rows.has(name))).toEqual([]);
  expect([...rows.values()].filter(({ source }) => source !== "default")).toEqual([]);
  expect(rows.get("PUBLIC_URL")).toMatchObject({ value: "http://localhost:3000" });
  expect(rows.get("DELIVERY")).toMatchObject({ value: "capture" });
  expect(rows.get("ROLES")).toMatchObject({ value: ["api", "smtp", "worker"] });
  expect(rows.get("DNS_PORT")).toMatchObject({ value: null, default: "(off)" });
  expect(rows.get("PLAN_PRO")).toMatchObject({ value: "100/200" });
  expect(rows.get("TIER_UNLIMITED")).toMatchObject({ value: "unlimited" });
  expect(rows.get("MASTER_KEY")).toMatchObject({ set: false });
});

test("config says where each setting comes from", async () => {
  const file = join(newFolder("command"), "root.key");
  writeFileSync(file, `${"r".repeat(40)}\n`);
  const env = { PORT: "3000", HOST: "", ROOT_API_KEY_FILE: file, PLAN_GOLD: "7/9", TIER_NEW: "5" };
  const rows = await shown(env);
  const sources = ["PORT", "HOST", "ROOT_API_KEY", "PLAN_GOLD", "PLAN_PRO", "TIER_NEW"].map((name) =>
    rows.get(name),
  );
  expect(sources.map((row) => row?.source)).toEqual([
    "environment",
    "default",
    "file",
    "environment",
    "default",
    "environment",
  ]);
  expect(rows.get("PLAN_GOLD")).toMatchObject({ value: "7/9" });
  // The environment overrides the file.
  expect((await shown({ ...env, ROOT_API_KEY: "e".repeat(40) })).get("ROOT_API_KEY")?.source).toBe(
    "environment",
  );
});

test("config shows no secret, not even its length, and no credentials or parameters of a URL", async () => {
  const env = {
    DATABASE_AUTH_TOKEN: "hush-token",
    REDIS_URL: "redis://:hush-redis@127.0.0.1:1",
    ROOT_API_KEY: `hush-${"r".repeat(40)}`,
    MASTER_KEY: `hush-${"m".repeat(40)}`,
    MASTER_KEY_OLD: `hush-${"o".repeat(40)}`,
    SMTP_RELAY_URL: "smtp://me:hush-relay@relay.example",
    POSTRIDER_API_KEY: "hush-key",
    S3_SECRET_ACCESS_KEY: "hush-s3",
    OIDC_ISSUER: "https://id.example",
    OIDC_CLIENT_ID: "postrider",
    OIDC_CLIENT_SECRET: "hush-oidc",
    ACME_EAB_KID: "me",
    ACME_EAB_HMAC_KEY: "hush-hush-hush-acme",
    S3_SESSION_TOKEN: "hush-session",
    DNS_TSIG_KEYS: `hush-tsig:hmac-sha256:${btoa("k".repeat(32))}`,
    METRICS_TOKEN: "hush-hush-hush-metrics",
    DATABASE_URL: "libsql://me:hush-password@db.example/x?authToken=hush-query",
    PUBLIC_URL: "https://api.example",
  };
  for (const output of [(await postrider(["config"], env)).stdout, await onTerminal(["config"], env)]) {
    expect(output).toContain("https://api.example");
    expect(output).toContain("libsql://***@db.example/x?***");
    expect(output).not.toContain("hush");
  }
  const rows = await shown(env);
  const secrets = SETTINGS.filter(({ secret }) => secret).map(({ name }) => rows.get(name));
  expect(secrets.map((row) => [row?.set, Object.keys(row ?? {})])).toEqual(
    secrets.map(() => [true, ["name", "set", "source", "default"]]),
  );
  expect((await shown({})).get("DNS_TSIG_KEYS")?.set).toBe(false);
});

test("config is a table on a terminal, and exits with 78 and all problems if settings are invalid", async () => {
  const table = await onTerminal(["config"], { PORT: "8080", MASTER_KEY: "m".repeat(32) });
  expect(table).toMatch(/^name +value +source\nHOST +0\.0\.0\.0 +default\nPORT +8080 +environment\n/);
  expect(table).toMatch(/^MASTER_KEY +\(set\) +environment$/m);
  expect(table).toMatch(/^DNS_PORT +\(off\) +default$/m);
  const wrong = await postrider(["config"], { PORT: "x", ROLES: "cook" });
  expect([wrong.code, wrong.stdout]).toEqual([78, ""]);
  for (const name of ["PORT", "ROLES"]) expect(wrong.stderr).toContain(name);
});
