import { afterAll, beforeAll, expect, test } from "bun:test";
import { startService, type TestService } from "../support/service.ts";

let service: TestService;
let senderId: string;
beforeAll(async () => {
  service = await startService({ ROLES: "api" });
  senderId = (await asAccount("GET", "/v1/senders")).body.data[0].id;
});
afterAll(() => service.stop());

function asAccount(method: string, path: string, body?: unknown) {
  return service.call(method, path, body, { key: service.accountKey });
}

test.each<[method: string, path: string, body: unknown, params: string[]]>([
  ["POST", "/v1/contacts", { email: "a", metadata: { a: "x".repeat(20_000) } }, ["email", "metadata"]],
  ["POST", "/v1/suppressions", { email: "a", expiresAt: "2020-01-01T00:00:00Z" }, ["email", "expiresAt"]],
  ["POST", "/v1/webhooks", { url: "a", eventTypes: ["*", "open"] }, ["url", "eventTypes"]],
  ["PATCH", "/v1/webhooks/any", { url: "a", eventTypes: ["*", "open"] }, ["url", "eventTypes"]],
  ["GET", "/v1/emails?after=a&before=b", undefined, ["after", "before"]],
  ["GET", "/v1/stats?from=a&to=b", undefined, ["from", "to"]],
])("%s %s is told everything that is wrong at once", async (method, path, body, params) => {
  const { status, body: answer } = await service.call(method, path, body);
  expect([status, answer.error.param]).toEqual([422, params[0]]);
  expect(answer.error.issues.map(({ param }: { param: string }) => param)).toEqual(params);
});

test("PATCH /v1/senders/{id} is told everything that is wrong at once", async () => {
  const change = { plan: "a", trustTier: "a", externalId: "snd_a", suspendedAt: "a" };
  const { body } = await asAccount("PATCH", `/v1/senders/${senderId}`, change);
  expect(body.error.issues.map(({ param }: { param: string }) => param)).toEqual(Object.keys(change));
});
