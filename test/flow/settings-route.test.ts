import { afterAll, beforeAll, expect, test } from "bun:test";
import { SETTINGS } from "../../src/config/settings.ts";
import { startService, type TestService } from "../support/service.ts";

const RELAY = "smtp://user:relay-password@relay.example:587";

let service: TestService;
beforeAll(async () => {
  service = await startService({
    SMTP_RELAY_URL: RELAY,
    DELIVERY: "relay",
    METRICS_TOKEN: "metrics-token-0123456789-0123456789",
    PLAN_GOLD: "5/10",
  });
});
afterAll(() => service.stop());

const settings = async (key: string) => service.call("GET", "/v1/settings", undefined, { key });

test("an account-wide key sees each setting with its value, source and help", async () => {
  const { status, body } = await settings(service.accountKey);
  expect(status).toBe(200);
  const shown = new Map<string, object>(body.data.map((row: { name: string }) => [row.name, row]));
  for (const { name } of SETTINGS)
    if (!name.includes("<")) expect([name, shown.has(name)]).toEqual([name, true]);
  expect(shown.get("DELIVERY")).toMatchObject({
    value: "relay",
    source: "environment",
    secret: false,
    set: true,
  });
  expect(shown.get("PLAN_GOLD")).toMatchObject({ value: "5/10", source: "environment" });
  expect(shown.get("ALLOW_PRIVATE_MX")).toMatchObject({ value: "1", source: "environment" });
  expect(shown.get("REDIS_URL")).toMatchObject({ value: null, source: "default", set: false });
  expect(shown.get("METRICS_TOKEN")).toMatchObject({ value: null, secret: true, set: true });
});

test("no secret or password is shown", async () => {
  const text = JSON.stringify((await settings(service.accountKey)).body);
  expect(text).not.toContain("relay-password");
  expect(text).not.toContain("metrics-token");
});

test("a project's key sees none", async () => {
  expect((await settings(service.projectKey)).status).toBe(403);
});
