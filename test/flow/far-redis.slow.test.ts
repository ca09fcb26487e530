import { expect, setDefaultTimeout, test } from "bun:test";
import { newFolder } from "../support/folder.ts";
import { until } from "../support/poll.ts";
import { startRedis } from "../support/redis.ts";
import { startRelay } from "../support/relay.ts";
import { callRole, startRole } from "../support/role-process.ts";

setDefaultTimeout(90_000);

const ROOT_API_KEY = "test-root-key-0123456789-0123456789";
const SENDS = 150;
const BATCH = 75;
const ONE_WAY_MS = 50;

test("with a Redis that is 100 ms away, a backlog is handed over before its locks end", async () => {
  const redis = await startRedis();
  const far = startRelay(redis.port, ONE_WAY_MS);
  const env = { DATA_DIR: newFolder("far"), DELIVERY: "capture", ROOT_API_KEY };
  const api = await startRole({ ...env, ROLES: "api", REDIS_URL: redis.url });
  const mail = (to: number) => ({
    from: { email: "hello@onboarding.mail.test" },
    to: [{ email: `delivered+${to}@simulator.mail.test` }],
    subject: "x",
    text: "x",
  });
  for (let from = 0; from < SENDS; from += BATCH) {
    const emails = Array.from({ length: BATCH }, (_, at) => mail(from + at));
    const { status } = await callRole(api, ROOT_API_KEY, "POST", "/v1/emails/batch", { emails });
    expect(status).toBeLessThan(300);
  }
  const worker = await startRole({ ...env, ROLES: "worker", REDIS_URL: `redis://127.0.0.1:${far.port}` });
  await until(async () => {
    const { body } = await callRole(api, ROOT_API_KEY, "GET", "/v1/emails?status=queued&limit=1");
    return body.data.length === 0;
  });
  expect(worker.output().stderr).not.toContain("outlived its lock");
  await Promise.all([worker.terminate(), api.terminate()]);
  far.stop();
  await redis.stop();
});
