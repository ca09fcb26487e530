import { afterAll, beforeAll, expect, test } from "bun:test";
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
    ...["public url", "public ips", "owner", "delivery", "disk", "database", "journal"],
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

test("a project's key is not", async () => {
  const { status, body } = await service.call("GET", "/v1/health");
  expect([status, body.error.type]).toEqual([403, "permission_error"]);
});
