import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

test("an account-wide key is shown the parts of the installation that are near and cheap to check", async () => {
  const { status, body } = await service.call("GET", "/v1/health", undefined, { key: service.accountKey });
  expect(status).toBe(200);
  expect(body.checks.map(({ name }: { name: string }) => name)).toEqual([
    "variables",
    "public url",
    "public ips",
    "owner",
    "delivery",
    "unsubscribe links",
    "disk",
    "database",
    "quotas",
    "mail queue",
    "webhook queue",
    "reputation",
    "hard bounces",
    "certificate",
    "clock",
  ]);
  expect(body.checks.find(({ name }: { name: string }) => name === "database")).toEqual({
    name: "database",
    status: "ok",
    message: expect.stringMatching(/^The database answers and has schema \d+\.$/),
  });
  expect(body.certificates).toEqual([
    {
      names: [`mx.${SERVICE_DOMAIN}`],
      source: "self-signed",
      expiresAt: null,
      nextAt: null,
      lastError: null,
    },
  ]);
  expect(body.status).toBe("warn");
  expect(body.checkedAt).toMatch(/Z$/);
  // The next request a moment later gets the same report.
  expect((await service.call("GET", "/v1/health", undefined, { key: service.accountKey })).body).toEqual(
    body,
  );
});

/** The kernel's locks of this process on a file. */
function locksOn(file: string): number {
  const owner = new RegExp(` ${process.pid} \\S+:${statSync(file).ino} `);
  return readFileSync("/proc/locks", "latin1")
    .split("\n")
    .filter((line) => owner.test(line)).length;
}

// Without them the next program that closes the file, such as sqlite3, removes the log that the service writes.
test.skipIf(!existsSync("/proc/locks"))(
  "a health check leaves SQLite's lock on the database alone",
  async () => {
    const file = join(service.folder, "postrider.db");
    await service.call("GET", "/v1/health", undefined, { key: service.accountKey });
    expect(locksOn(file)).toBe(1);
  },
);

test("a project's key is not shown it", async () => {
  const { status, body } = await service.call("GET", "/v1/health");
  expect([status, body.error.type]).toEqual([403, "permission_error"]);
});
