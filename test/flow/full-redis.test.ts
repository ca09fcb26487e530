import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { startRedis, type TestRedis } from "../support/redis.ts";
import { OWNER, startService, type TestService } from "../support/service.ts";

setDefaultTimeout(90_000);

let redis: TestRedis;
let service: TestService;
beforeAll(async () => {
  redis = await startRedis();
  service = await startService({ REDIS_URL: redis.url });
});
afterAll(async () => {
  await service.stop();
  await redis.stop();
});

test("mail does not wait a minute for a Redis that is full", async () => {
  await redis.command("config", "set", "maxmemory", "1");
  const { body } = await service.call("POST", "/v1/emails", {
    from: "hello@onboarding.mail.test",
    to: OWNER,
    subject: "Hi",
    text: "Hello",
  });
  expect((await service.message(body.id, "delivered")).recipients).toMatchObject([{ attempts: 1 }]);
});
