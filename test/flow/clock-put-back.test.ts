import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { payloadMemory } from "../support/payload-memory.ts";
import { randomBytes } from "node:crypto";
import { newId } from "../../src/core/ids.ts";
import { prepareContent } from "../../src/store/messages/prepare-content.ts";
import { removeUnusedContents } from "../../src/flows/sweep/removals.ts";
import { push, type PushDeps } from "../../src/flows/webhooks/push.ts";
import { suppressFor } from "../../src/flows/deliver/suppression.ts";
import { UPLOAD_LOST_MS } from "../../src/flows/sweep/offload.ts";
import { ClockSetBack } from "../../src/flows/sweep/clock-set-back.ts";
import { FALL_BACK_AFTER_MS } from "../../src/flows/domains/check-times.ts";
import type { Job } from "../../src/queue/port.ts";
import { lostStrays, noteStray } from "../../src/store/contents/content-objects.ts";
import { UNUSED_KEPT_MS } from "../../src/store/contents/contents.ts";
import { insertOwnDelivery } from "../../src/store/webhooks/delivery-log.ts";
import { ALWAYS } from "../../src/store/engine/client.ts";
import { deleteOldAnswers } from "../../src/store/projects/idempotency.ts";
import { insertInstance } from "../../src/store/installation/instances.ts";
import { findStsPolicy, saveStsPolicy } from "../../src/store/domains/mta-sts.ts";
import { addSuppression, findSuppressions } from "../../src/store/projects/suppressions.ts";
import { BOX_KEY, type TestApi, testApi } from "../support/api.ts";
import { until } from "../support/poll.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

let api: TestApi;
beforeEach(async () => {
  api = await testApi();
});
afterEach(() => api.close());

/** The sweep's work if the clock may have been set back, which includes each start. */
async function look(): Promise<void> {
  const waits = new ClockSetBack({ db: api.db, clock: api.clock });
  waits.begin();
  await waits.turn();
}

/** The clock turns out to have been a year ahead. */
async function putBack(): Promise<void> {
  api.clock.step(-YEAR);
  await look();
}

describe("a domain", () => {
  const name = "news.example.com";
  let id: string;
  const call = (path: string, method = "POST") => api.call(method, `/v1/domains/${id}${path}`);
  beforeEach(async () => {
    const made = await api.call("POST", "/v1/domains", { body: { domain: name } });
    id = made.json.id;
    publish(made.json.records);
    expect((await call("/verify")).json.status).toBe("verified");
  });

  function publish(records: { type: string; name: string; value: string }[]): void {
    for (const record of records) api.zone.set(`${record.type} ${record.name}`, [record.value]);
  }

  test("a domain that was found broken while the clock was ahead falls back 72 hours later", async () => {
    api.zone.delete(`TXT ${name}`);
    await call("/verify");
    await putBack();
    api.clock.advance(FALL_BACK_AFTER_MS - 1);
    expect((await call("/verify")).json.status).toBe("verified");
    api.clock.advance(1);
    expect((await call("/verify")).json.status).toBe("pending");
  });

  test("a domain whose new key was made while it was ahead has its record checked as soon as any other", async () => {
    api.clock.step(YEAR);
    publish((await call("/rotate-dkim")).json.records);
    const keyAt = async (): Promise<number> => {
      const row = await api.db.first<{ at: number }>("SELECT next_check_at AS at FROM domains WHERE id = ?", [
        id,
      ]);
      return (row?.at ?? Number.NaN) - api.clock.now();
    };
    const wait = await keyAt();
    await putBack();
    expect(await keyAt()).toBe(wait);
  });

  test("a domain whose key began to sign while it was ahead gets another a week later, and no sooner", async () => {
    publish((await call("/rotate-dkim")).json.records);
    await call("/verify");
    await putBack();
    api.clock.advance(7 * DAY - 1);
    expect((await call("/rotate-dkim")).status).toBe(409);
    api.clock.advance(1);
    expect((await call("/rotate-dkim")).status).toBe(200);
  });
});

describe("a webhook", () => {
  let id: string;
  /** Number of signatures on each push. */
  let signed: number[];
  let status: number;
  let firstDelaySeconds: number;
  beforeEach(async () => {
    const body = { url: "https://hooks.example.com/", eventTypes: ["*"] };
    id = (await api.call("POST", "/v1/webhooks", { body })).json.id;
    [signed, status, firstDelaySeconds] = [[], 200, 0];
    await api.db.write([
      insertInstance({ id: "ins_1", host: "here", pid: 1, heartbeatAt: api.clock.now(), masterKeys: "" }),
    ]);
  });

  const deps = (): PushDeps => ({
    db: api.db,
    clock: api.clock,
    objects: null,
    boxKey: BOX_KEY,
    instanceId: "ins_1",
    random: () => 0,
    ...payloadMemory(),
    policy: {
      delaysSeconds: [firstDelaySeconds, 60],
      timeoutMs: 1000,
      disableAfterMs: 5 * DAY,
      allowPrivate: false,
    },
    async post({ headers }) {
      signed.push((headers["Service-Signature"] ?? "").split("v1=").length - 1);
      return { kind: "answered", status, body: new Uint8Array() };
    },
  });
  async function told(): Promise<Job> {
    const [now, key] = [api.clock.now(), newId("dlv", api.clock.now())];
    await api.db.write([insertOwnDelivery(api.acme.a.id, id, { id: key, type: "open", data: {} }, now)]);
    return { key, lane: id };
  }
  const tell = async () => push(deps(), await told());
  const enabled = async (): Promise<boolean> => (await api.call("GET", `/v1/webhooks/${id}`)).json.enabled;

  test("a webhook that has been failing since the clock was ahead is disabled five days later", async () => {
    status = 500;
    await tell();
    await putBack();
    api.clock.advance(5 * DAY - 1);
    await tell();
    expect(await enabled()).toBe(true);
    api.clock.advance(1);
    await tell();
    expect(await enabled()).toBe(false);
  });

  test("a webhook whose secret was changed while it was ahead keeps the old one for its grace period, and no longer", async () => {
    await api.call("POST", `/v1/webhooks/${id}/rotate-secret`, { body: { graceSeconds: 3600 } });
    api.clock.advance(HOUR / 2);
    await putBack();
    // A wait restarts only once.
    await look();
    api.clock.advance(HOUR - 1);
    await tell();
    api.clock.advance(1);
    await look();
    await tell();
    expect(signed).toEqual([2, 1]);
  });

  test("a webhook gets events from while it was ahead after the delay before a first attempt", async () => {
    firstDelaySeconds = 60;
    const job = await told();
    await push(deps(), job);
    await putBack();
    api.clock.advance(59_999);
    await push(deps(), job);
    expect(signed).toEqual([]);
    api.clock.advance(1);
    await push(deps(), job);
    expect(signed).toEqual([1]);
  });
});

test("an address that a soft bounce suppressed while the clock was ahead is free again after seven days", async () => {
  const senderId = api.acme.a.id;
  const cause = { senderId, messageId: "msg_1" } as const;
  const addresses = ["full@a.test", "gone@a.test", "by-hand@a.test"] as const;
  const [full, gone, byHand] = addresses;
  const now = api.clock.now();
  const chosen = now + 30 * DAY;
  await api.db.write([
    suppressFor({ ...cause, email: full, bounceType: "soft" }, ALWAYS, now),
    suppressFor({ ...cause, email: gone, bounceType: "hard" }, ALWAYS, now),
    ...addSuppression({
      id: newId("sup", now),
      senderId,
      email: byHand,
      reason: "manual",
      bounceType: null,
      messageId: null,
      note: null,
      expiresAt: chosen,
      createdAt: now,
    }),
  ]);
  await putBack();
  const suppressed = async () => [
    ...(await findSuppressions(api.db, senderId, addresses, api.clock.now())).keys(),
  ];
  api.clock.advance(7 * DAY - 1);
  await look();
  expect((await suppressed()).sort()).toEqual([...addresses].sort());
  api.clock.advance(1);
  expect((await suppressed()).sort()).toEqual([byHand, gone]);
  api.clock.advance(chosen - api.clock.now());
  expect(await suppressed()).toEqual([gone]);
});

test("an idempotent answer stored while the clock was ahead is kept for a day, and then removed", async () => {
  const make = async (): Promise<string> => {
    const body = { url: "https://hooks.example.com/", eventTypes: ["*"] };
    const headers = { "Idempotency-Key": "once" };
    return (await api.call("POST", "/v1/webhooks", { body, headers })).json.id;
  };
  const first = await make();
  await putBack();
  api.clock.advance(DAY - 1);
  await look();
  expect(await make()).toBe(first);
  expect(await deleteOldAnswers(api.db, api.clock.now(), 10)).toBe(0);
  api.clock.advance(1);
  expect(await make()).not.toBe(first);
  api.clock.advance(DAY);
  expect(await deleteOldAnswers(api.db, api.clock.now(), 10)).toBe(1);
});

test("an MTA-STS policy fetched while the clock was ahead is replaced by a newer one, and lives as long as it says", async () => {
  const fetched = (domain: string, id: string, maxAgeSeconds = 86_400) =>
    saveStsPolicy(api.db, {
      domain,
      id,
      mode: "enforce",
      mx: ["mx.in.test"],
      maxAgeSeconds,
      fetchedAt: api.clock.now(),
    });
  await fetched("in.test", "one");
  await fetched("other.test", "one", 2 * 86_400);
  await putBack();
  await fetched("in.test", "two");
  expect(await findStsPolicy(api.db, "in.test")).toMatchObject({ id: "two" });
  const { fetchedAt } = (await findStsPolicy(api.db, "other.test")) ?? {};
  expect(fetchedAt).toBe(api.clock.now());
  api.clock.advance(2 * DAY);
  await fetched("in.test", "three");
  expect(await findStsPolicy(api.db, "other.test")).toBeNull();
});

test("content without references since the clock was ahead is removed an hour later, and no sooner", async () => {
  const { db, clock } = api;
  const objects = (): Promise<string[]> => lostStrays(db, clock.now() - UPLOAD_LOST_MS, 10);
  const left = async (): Promise<number> => (await db.all("SELECT 1 FROM contents")).length;
  await prepareContent(api, api.acme.a.id, randomBytes(1024 * 1024));
  await db.write([noteStray("object", clock.now())]);
  expect(await left()).toBe(1);
  await putBack();
  clock.advance(UNUSED_KEPT_MS);
  await look();
  await removeUnusedContents(api);
  expect([await left(), await objects()]).toEqual([1, []]);
  clock.advance(1);
  await removeUnusedContents(api);
  expect([await left(), await objects()]).toEqual([0, ["object"]]);
});

test("the last use of a key, if recorded while the clock was ahead, is corrected at its next use", async () => {
  const usedAt = async (): Promise<string> => {
    const { json } = await api.call("GET", "/v1/api-keys");
    return json.data.find(({ lastUsedAt }: { lastUsedAt: string | null }) => lastUsedAt !== null)?.lastUsedAt;
  };
  await usedAt();
  await until(async () => (await usedAt()) !== undefined);
  await putBack();
  api.clock.advance(HOUR);
  const now = new Date(api.clock.now()).toISOString();
  await until(async () => (await usedAt()) === now);
});
