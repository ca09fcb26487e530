import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  DELETED_AFTER_MS,
  MAX_LABELS,
  MAX_LABEL_CHARS,
  MAX_SNOOZE_MS,
} from "../../src/core/messages/mailbox.ts";
import { HOUR_MS, MINUTE_MS } from "../../src/core/time/units.ts";
import { receivingInboxes, startService, type TestService } from "../support/service.ts";
import { turnUntil, type ShiftedClock, shiftedClock } from "../support/shifted-clock.ts";

setDefaultTimeout(60_000);

let service: TestService;
let clock: ShiftedClock;
let inboxId: string;

beforeAll(async () => {
  clock = shiftedClock();
  service = await startService({}, clock);
  [inboxId = ""] = await receivingInboxes(service, "in.test", ["support@in.test"]);
});
afterAll(() => service.stop());

const call = (method: string, path: string, body?: unknown) => service.call(method, path, body);
const wide = (method: string, path: string, body?: unknown) =>
  service.call(method, path, body, { key: service.accountKey });
const at = (ms: number) => new Date(clock.now() + ms).toISOString();

let count = 0;
async function arrived(body: Record<string, unknown> = {}): Promise<{ messageId: string; threadId: string }> {
  const subject = `Question ${++count}`;
  return (await call("POST", "/v1/inbound/simulate", { inboxId, subject, ...body })).body;
}
const change = (threadId: string, body: unknown) => call("PATCH", `/v1/threads/${threadId}`, body);
const thread = async (threadId: string) => (await call("GET", `/v1/threads/${threadId}`)).body;
async function listed(query: string): Promise<string[]> {
  const { status, body } = await call("GET", `/v1/threads?limit=100&${query}`);
  expect(status).toBe(200);
  return body.data.map(({ id }: { id: string }) => id);
}
async function member(body: Record<string, unknown> = {}): Promise<string> {
  const email = `person${++count}@example.com`;
  return (await wide("POST", "/v1/members", { email, role: "support", ...body })).body.id;
}

describe("labels of a thread", () => {
  test("labels replace those before, and a list finds a thread by each of them", async () => {
    const { threadId } = await arrived();
    const other = await arrived();
    expect(await thread(threadId)).toMatchObject({ labels: [] });
    expect((await change(threadId, { labels: ["billing", "Größe"] })).body.labels).toEqual([
      "billing",
      "Größe",
    ]);
    expect(await listed(`label=${encodeURIComponent("Größe")}`)).toEqual([threadId]);
    await change(threadId, { labels: ["billing"] });
    await change(threadId, { read: true });
    expect(await listed(`label=${encodeURIComponent("Größe")}`)).toEqual([]);
    expect(await listed("label=billing")).toEqual([threadId]);
    expect(await listed("label=billing")).not.toContain(other.threadId);
  });

  test("half of a character in a label is replaced, and so the labels in use can be read", async () => {
    const { threadId } = await arrived();
    expect((await change(threadId, { labels: ["\udc00a"] })).body.labels).toEqual(["\ufffda"]);
    expect((await call("GET", "/v1/mailbox")).body.labels).toContainEqual({ label: "\ufffda", threads: 1 });
  });

  test.each([
    ["one label too many", Array.from({ length: MAX_LABELS + 1 }, (_, at) => `l${at}`)],
    ["one character too many", ["x".repeat(MAX_LABEL_CHARS + 1)]],
    ["an empty label", [""]],
    ["a label with a space at its end", ["billing "]],
    ["a label of two lines", ["a\nb"]],
    ["one label twice", ["a", "a"]],
  ])("%s is refused", async (_, labels) => {
    const { threadId } = await arrived();
    expect((await change(threadId, { labels })).status).toBe(422);
    expect((await thread(threadId)).labels).toEqual([]);
  });

  test("a thread takes as many labels as the limit says", async () => {
    const { threadId } = await arrived();
    const labels = Array.from({ length: MAX_LABELS }, (_, at) => `${at}`.padStart(MAX_LABEL_CHARS, "x"));
    expect((await change(threadId, { labels })).body.labels).toEqual(labels);
  });
});

describe("the member a thread is assigned to", () => {
  test("a thread is assigned to a member, listed for them, and to nobody once they are removed", async () => {
    const { threadId } = await arrived();
    const id = await member();
    expect((await change(threadId, { assigneeId: id })).body.assigneeId).toBe(id);
    expect(await listed(`assignee=${id}`)).toEqual([threadId]);
    expect(await listed("assignee=none")).not.toContain(threadId);
    expect((await wide("DELETE", `/v1/members/${id}`)).status).toBe(204);
    expect((await thread(threadId)).assigneeId).toBeNull();
    expect(await listed(`assignee=${id}`)).toEqual([]);
    expect(await listed("assignee=none")).toContain(threadId);
  });

  test("null takes the member off the thread", async () => {
    const { threadId } = await arrived();
    await change(threadId, { assigneeId: await member() });
    expect((await change(threadId, { assigneeId: null })).body.assigneeId).toBeNull();
  });

  test("only a member who may see the project can have its threads", async () => {
    const { threadId } = await arrived();
    const second = (await wide("POST", "/v1/senders", { name: "Second" })).body.id;
    const disabled = await member();
    await wide("PATCH", `/v1/members/${disabled}`, { status: "disabled" });
    for (const id of [await member({ senderIds: [second] }), disabled, "mem_00000000000000000000000000"]) {
      const refused = await change(threadId, { assigneeId: id });
      expect([refused.status, refused.body.error.param]).toEqual([422, "assigneeId"]);
    }
    const own = (await call("GET", "/v1/me")).body.project.id;
    const sees = await member({ senderIds: [own] });
    expect((await change(threadId, { assigneeId: sees })).status).toBe(200);
  });
});

describe("the folder of a thread", () => {
  test("a thread is listed in its folder alone, archived or not", async () => {
    const { threadId } = await arrived();
    await change(threadId, { archived: true });
    for (const folder of ["spam", "trash"]) {
      expect((await change(threadId, { folder })).body).toMatchObject({ folder, snoozedUntil: null });
      expect(await listed(`folder=${folder}`)).toContain(threadId);
      expect(await listed(`folder=${folder}&inboxId=${inboxId}`)).toContain(threadId);
      expect(await listed("")).not.toContain(threadId);
      expect(await listed("archived=true")).not.toContain(threadId);
    }
    expect((await change(threadId, { folder: "inbox", archived: false })).body.deletesAt).toBeNull();
    expect(await listed("")).toContain(threadId);
  });

  test("a thread in spam or trash is deleted with its messages after thirty days, and not before", async () => {
    const [spam, trash, kept] = [await arrived(), await arrived(), await arrived()];
    await change(spam.threadId, { folder: "spam" });
    const { deletesAt } = (await change(trash.threadId, { folder: "trash" })).body;
    expect(Math.abs(Date.parse(deletesAt) - clock.now() - DELETED_AFTER_MS)).toBeLessThan(MINUTE_MS);
    clock.shift(DELETED_AFTER_MS - HOUR_MS);
    const woken = await arrived();
    await change(woken.threadId, { snoozedUntil: at(MINUTE_MS) });
    clock.shift(2 * MINUTE_MS);
    await turnUntil(clock, async () => (await thread(woken.threadId)).folder === "inbox");
    expect((await thread(trash.threadId)).folder).toBe("trash");
    clock.shift(HOUR_MS);
    for (const { threadId, messageId } of [spam, trash]) {
      await turnUntil(clock, async () => (await call("GET", `/v1/threads/${threadId}`)).status === 404);
      expect((await call("GET", `/v1/emails/${messageId}`)).status).toBe(404);
    }
    expect((await thread(kept.threadId)).folder).toBe("inbox");
  });

  test("a snoozed thread is away until its time, and comes back as unread", async () => {
    const { threadId } = await arrived();
    await change(threadId, { read: true });
    const snoozedUntil = at(HOUR_MS);
    expect((await change(threadId, { snoozedUntil })).body).toMatchObject({
      folder: "snoozed",
      snoozedUntil,
      deletesAt: null,
      read: true,
    });
    expect([await listed(""), await listed("folder=snoozed")]).toEqual([
      expect.not.arrayContaining([threadId]),
      expect.arrayContaining([threadId]),
    ]);
    clock.shift(HOUR_MS + MINUTE_MS);
    await turnUntil(clock, async () => (await thread(threadId)).folder === "inbox");
    expect(await thread(threadId)).toMatchObject({ read: false, snoozedUntil: null });
  });

  test("null ends a snooze at once", async () => {
    const { threadId } = await arrived();
    await change(threadId, { snoozedUntil: at(HOUR_MS) });
    expect((await change(threadId, { snoozedUntil: null })).body.folder).toBe("inbox");
  });

  test.each([
    ["snoozed", "inbox"],
    ["trash", "inbox"],
    ["spam", "spam"],
  ])("mail that arrives in a thread of %s leaves it in %s", async (from, to) => {
    const { threadId, messageId } = await arrived();
    await change(threadId, from === "snoozed" ? { snoozedUntil: at(HOUR_MS) } : { folder: from });
    expect((await arrived({ inReplyTo: messageId })).threadId).toBe(threadId);
    expect(await thread(threadId)).toMatchObject({ folder: to, snoozedUntil: null, messageCount: 2 });
  });

  test("our reply leaves a snoozed thread snoozed, and takes one out of the trash", async () => {
    for (const [place, folder] of [
      [{ snoozedUntil: at(HOUR_MS) }, "snoozed"],
      [{ folder: "trash" }, "inbox"],
    ] as const) {
      const { threadId } = await arrived({ from: { email: "ada@client.test" } });
      await change(threadId, place);
      expect((await call("POST", `/v1/threads/${threadId}/reply`, { text: "Yes" })).status).toBe(202);
      expect((await thread(threadId)).folder).toBe(folder);
    }
  });

  test("a snooze until a time that has passed is refused", async () => {
    const { threadId } = await arrived();
    const refused = await change(threadId, { snoozedUntil: at(-MINUTE_MS) });
    expect([refused.status, refused.body.error.param]).toEqual([422, "snoozedUntil"]);
  });

  test("a snooze of 366 days is taken, and a longer one is refused", async () => {
    const { threadId } = await arrived();
    expect((await change(threadId, { snoozedUntil: at(MAX_SNOOZE_MS) })).body.folder).toBe("snoozed");
    const refused = await change(threadId, { snoozedUntil: at(MAX_SNOOZE_MS + MINUTE_MS) });
    expect([refused.status, refused.body.error.param]).toEqual([422, "snoozedUntil"]);
  });

  test.each([
    { folder: "archive" },
    { folder: "snoozed" },
    { folder: "spam", snoozedUntil: "2099-01-01T00:00:00Z" },
    { snoozedUntil: "tomorrow" },
  ])("%j is refused", async (body) => {
    const { threadId } = await arrived();
    expect((await change(threadId, body)).status).toBe(422);
    expect((await thread(threadId)).folder).toBe("inbox");
  });
});

test("the mailbox has the labels in use and the members who may see the project, but none for its own key", async () => {
  const { project } = (await call("GET", "/v1/me")).body;
  const other = (await wide("POST", "/v1/senders", { name: "Elsewhere", externalId: "elsewhere" })).body;
  const [sees, limited, disabled] = [await member(), await member({ senderIds: [other.id] }), await member()];
  await wide("PATCH", `/v1/members/${disabled}`, { status: "disabled" });
  for (const labels of [["rare"], ["rare", "common"], ["common"], ["common"]])
    await change((await arrived()).threadId, { labels });
  const named = (label: string) => (one: { label: string }) => one.label === label;
  const { labels, members } = (
    await service.call("GET", "/v1/mailbox", undefined, {
      key: service.accountKey,
      headers: { "x-service-product": project.externalId },
    })
  ).body;
  expect(labels.find(named("common"))).toEqual({ label: "common", threads: 3 });
  expect(labels.findIndex(named("common"))).toBeLessThan(labels.findIndex(named("rare")));
  const ids = members.map(({ id }: { id: string }) => id);
  expect(ids).toContain(sees);
  expect(ids).not.toContain(limited);
  expect(ids).not.toContain(disabled);
  expect((await call("GET", "/v1/mailbox")).body).toEqual({ labels, members: [] });
});

test("the audit trail says who labelled, assigned and moved a thread", async () => {
  const { threadId } = await arrived();
  const assigneeId = await member();
  await change(threadId, { labels: ["billing"], assigneeId, folder: "spam" });
  const trail = (await wide("GET", `/v1/audit-log?target=${threadId}`)).body.data;
  expect(trail[0]).toMatchObject({
    action: "thread.update",
    changes: {
      labels: [[], ["billing"]],
      assigneeId: [null, assigneeId],
      folder: ["inbox", "spam"],
    },
  });
});
