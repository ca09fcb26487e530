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
  [
    "POST",
    "/v1/contacts",
    { email: "a", firstName: 5, metadata: { a: "x".repeat(20_000) } },
    ["firstName", "email", "metadata"],
  ],
  [
    "PATCH",
    "/v1/contacts/any",
    { lastName: 5, metadata: { a: "x".repeat(20_000) } },
    ["lastName", "metadata"],
  ],
  [
    "POST",
    "/v1/suppressions",
    { email: "a", note: 5, expiresAt: "2020-01-01T00:00:00Z" },
    ["note", "email", "expiresAt"],
  ],
  ["POST", "/v1/suppressions", { expiresAt: "2020-01-01T00:00:00Z" }, ["email", "expiresAt"]],
  ["POST", "/v1/webhooks", { url: "a", eventTypes: ["nope"] }, ["eventTypes[0]", "url"]],
  [
    "PATCH",
    "/v1/webhooks/any",
    { url: 5, enabled: 5, eventTypes: ["*", "open"] },
    ["url", "enabled", "eventTypes"],
  ],
  ["GET", "/v1/emails?after=a&before=b", undefined, ["after", "before"]],
  ["GET", "/v1/stats?from=a&to=b", undefined, ["from", "to"]],
])("%s %s reports every fault at once", async (method, path, body, params) => {
  const { status, body: answer } = await service.call(method, path, body);
  expect([status, answer.error.param]).toEqual([422, params[0]]);
  expect(answer.error.issues.map(({ param }: { param: string }) => param)).toEqual(params);
});

test("projects report every fault at once, of shape and of rules", async () => {
  const wanted = { dailyQuota: "a", plan: "a", trustTier: "a", tracking: { opens: 5 }, externalId: "snd_a" };
  const params = ["dailyQuota", "tracking.opens", "plan", "trustTier", "externalId"];
  for (const [method, path, faults] of [
    ["POST", "/v1/senders", ["name", ...params]],
    ["PATCH", `/v1/senders/${senderId}`, params],
  ] as const) {
    const { body } = await asAccount(method, path, wanted);
    expect(body.error.issues.map(({ param }: { param: string }) => param).toSorted()).toEqual(
      faults.toSorted(),
    );
  }
});

test("a body that is not an object, or has too many faults, reports only those", async () => {
  for (const [body, count] of [
    [[1], 1],
    [{ url: 5, eventTypes: Array(100).fill("nope") }, 50],
    [{ url: "a", eventTypes: Array(100).fill("nope") }, 50],
  ] as const) {
    const { status, body: answer } = await service.call("POST", "/v1/webhooks", body);
    expect([status, answer.error.issues.length <= count]).toEqual([422, true]);
  }
});

test("PATCH /v1/senders/{id} reports every fault at once", async () => {
  const change = { plan: "a", trustTier: "a", externalId: "snd_a", suspendedAt: "a" };
  const { body } = await asAccount("PATCH", `/v1/senders/${senderId}`, change);
  expect(body.error.issues.map(({ param }: { param: string }) => param)).toEqual(Object.keys(change));
});
