import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { startServer } from "../support/database.ts";
import { openEvents } from "../support/event-stream.ts";
import { newFolder } from "../support/folder.ts";
import { startRedis } from "../support/redis.ts";
import { callRole, startRole } from "../support/role-process.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(90_000);

const ROOT_API_KEY = "test-root-key-0123456789-0123456789";

const GROUNDS = [
  { name: "a file", server: false, redis: false },
  { name: "a file and Redis", server: false, redis: true },
  { name: "a database server", server: true, redis: false },
];

test.each(GROUNDS)(
  "a stream shows, and a wait ends with, what another process commits to $name",
  async ({ server, redis }) => {
    const folder = newFolder("live");
    const primary = server ? await startServer() : null;
    const shared = redis ? await startRedis() : null;
    const env = {
      DATA_DIR: folder,
      DATABASE_URL: primary?.url ?? `file:${join(folder, "postrider.db")}`,
      DELIVERY: "capture",
      OWNER_EMAIL: "owner@example.com",
      ROOT_API_KEY,
      ...(shared === null ? {} : { REDIS_URL: shared.url }),
    };
    const other = await startRole({ ...env, ROLES: "api,worker" });
    const shown = await startRole({ ...env, ROLES: "api" });
    const headers = { "x-service-product": "default" };
    const stream = await openEvents({ url: shown.url, key: ROOT_API_KEY, headers });
    const waiting = callRole(shown, ROOT_API_KEY, "GET", "/v1/emails?wait=60");
    const item = {
      from: { email: "shop@onboarding.mail.test" },
      to: [{ email: "owner@example.com" }],
      subject: "Hello",
      text: "Hi",
    };
    const sent = await callRole(other, ROOT_API_KEY, "POST", "/v1/emails", item);
    const events = await stream.until(({ event }) => event === "delivery");
    expect(events.map(({ event }) => event)).toEqual(["accepted", "queued", "sending", "delivery"]);
    expect(new Set(events.map(({ data }) => data.messageId))).toEqual(new Set([sent.body.id]));
    expect((await waiting).body.data[0].id).toBe(sent.body.id);
    const ended = stream.ended();
    // The stream would hold up the stop of its process.
    expect(await Promise.all([shown.terminate(), other.terminate()])).toEqual([0, 0]);
    await ended;
    await shared?.stop();
    await primary?.stop();
  },
);
