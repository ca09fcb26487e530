import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { startService, type TestService } from "../support/service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

test("an account-wide key is shown what the installation stands on, near and cheap", async () => {
  const { status, body } = await service.call("GET", "/v1/health", undefined, { key: service.accountKey });
  expect(status).toBe(200);
  expect(body.checks.map(({ name }: { name: string }) => name)).toEqual([
    ...["public url", "public ips", "owner", "delivery", "disk", "database"],
    ...["mail queue", "webhook queue", "certificate", "clock"],
  ]);
  expect(body.checks.find(({ name }: { name: string }) => name === "database")).toEqual({
    ...{ name: "database", status: "ok", message: expect.stringMatching(/^answers; schema \d+$/) },
  });
  expect(body.status).toBe("warn");
  expect(body.checkedAt).toMatch(/Z$/);
  // The next one a moment later is the same look.
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

// Without them the next program that is done with the file, such as sqlite3, removes the log that the service writes.
test.skipIf(!existsSync("/proc/locks"))("a look leaves SQLite its lock on the database", async () => {
  const file = join(service.folder, "postrider.db");
  await service.call("GET", "/v1/health", undefined, { key: service.accountKey });
  expect(locksOn(file)).toBe(1);
});

test("a project's key is not", async () => {
  const { status, body } = await service.call("GET", "/v1/health");
  expect([status, body.error.type]).toEqual([403, "permission_error"]);
});
