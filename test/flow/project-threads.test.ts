import { describe, expect, test } from "bun:test";
import { inboxService } from "../support/inbox-service.ts";
import { delivered, deliveredRecord } from "../support/mail-in.ts";

const scene = inboxService();
const { newInbox } = scene;

type Filters = Record<string, string>;

async function list(query: Filters = {}) {
  return scene.service.call("GET", `/v1/threads?${new URLSearchParams(query)}`);
}

async function idsOf(query: Filters = {}): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const { body } = await list({ ...query, ...(cursor === "" ? {} : { cursor }) });
    ids.push(...body.data.map(({ id }: { id: string }) => id));
    cursor = body.nextCursor;
  }
  return ids;
}

const update = (id: string, body: unknown, key?: string) =>
  scene.service.call("PATCH", `/v1/threads/${id}`, body, key === undefined ? {} : { key });

describe("GET /v1/threads", () => {
  test("lists the threads of all inboxes, last active first, in pages", async () => {
    const boxes = [await newInbox(), await newInbox()];
    const made: string[] = [];
    for (let at = 0; at < 5; at++) {
      const record = await deliveredRecord(scene.service, { to: boxes[at % 2]?.address ?? "" });
      made.unshift(record.threadId);
    }
    const all = await idsOf({ limit: "2" });
    expect(all.slice(0, 5)).toEqual(made);
    expect(new Set(all).size).toBe(all.length);
    expect(await idsOf({ inboxId: boxes[0]?.id ?? "" })).toEqual([made[0], made[2], made[4]] as string[]);
  });

  test("finds a text of any inbox", async () => {
    const [one, two] = [await newInbox(), await newInbox()];
    const headers = ["Subject: Quarterly zebra report"];
    const first = await deliveredRecord(scene.service, { to: one.address, headers });
    const second = await deliveredRecord(scene.service, { to: two.address, headers });
    await deliveredRecord(scene.service, { to: two.address, headers: ["Subject: Other"] });
    expect(await idsOf({ q: "ZEBRA", limit: "1" })).toEqual([second.threadId, first.threadId]);
    expect(await idsOf({ q: "zebra", inboxId: one.id })).toEqual([first.threadId]);
  });

  test("finds a domain beyond ASCII by its letters", async () => {
    const { address } = await newInbox();
    const record = await deliveredRecord(scene.service, {
      to: address,
      headers: ["From: zoe@xn--bcher-kva.example"],
    });
    expect(await idsOf({ q: "zoe@bücher" })).toEqual([record.threadId]);
  });

  test("answers 404 for another project's inbox and refuses another query's cursor", async () => {
    expect((await list({ inboxId: "inb_00000000000000000000000000" })).status).toBe(404);
    const { address } = await newInbox();
    for (let at = 0; at < 2; at++) await delivered(scene.service, { to: address });
    const { body } = await list({ limit: "1" });
    expect((await list({ limit: "1", unread: "true", cursor: body.nextCursor })).status).toBe(400);
  });

  test("keeps another project's threads apart", async () => {
    const { accountKey: key } = scene.service;
    const made = await scene.service.call("POST", "/v1/senders", { name: "Apart" }, { key });
    const { body } = await scene.service.call(
      "POST",
      "/v1/api-keys",
      { name: "k", senderId: made.body.id },
      { key },
    );
    const apart = await scene.service.call("GET", "/v1/threads", undefined, { key: body.secret });
    expect(apart.body).toEqual({ data: [], nextCursor: null });
    const { address } = await newInbox();
    const { threadId } = await deliveredRecord(scene.service, { to: address });
    expect((await update(threadId, { archived: true }, body.secret)).status).toBe(404);
    expect(await idsOf()).toContain(threadId);
  });
});

describe("a thread", () => {
  test("a thread is unread until the client marks it as read, and again when mail arrives", async () => {
    const { id, address } = await newInbox();
    const message = scene.newMessageId();
    const { threadId } = await deliveredRecord(scene.service, {
      to: address,
      headers: [`Message-ID: ${message}`],
    });
    expect(await idsOf({ inboxId: id, unread: "true" })).toEqual([threadId]);
    const read = await update(threadId, { read: true });
    expect([read.status, read.body.read, read.body.archived]).toEqual([200, true, false]);
    expect(await idsOf({ inboxId: id, unread: "true" })).toEqual([]);
    expect(await idsOf({ inboxId: id, unread: "false" })).toEqual([threadId]);
    await delivered(scene.service, { to: address, headers: [`In-Reply-To: ${message}`] });
    expect(await idsOf({ inboxId: id, unread: "true" })).toEqual([threadId]);
  });

  test("a thread stays read when the project replies", async () => {
    const { address } = await newInbox();
    const { threadId } = await deliveredRecord(scene.service, { to: address });
    await update(threadId, { read: true });
    await scene.replied(threadId, { text: "Thanks" });
    expect((await scene.service.call("GET", `/v1/threads/${threadId}`)).body.read).toBe(true);
  });

  test("a thread is listed only among archived ones once archived, and comes back with new mail", async () => {
    const { id, address } = await newInbox();
    const message = scene.newMessageId();
    const { threadId } = await deliveredRecord(scene.service, {
      to: address,
      headers: [`Message-ID: ${message}`],
    });
    await update(threadId, { archived: true });
    const inbox = async () => (await scene.service.call("GET", `/v1/inboxes/${id}/threads`)).body.data;
    expect(await idsOf({ inboxId: id })).toEqual([]);
    expect(await inbox()).toEqual([]);
    expect(await idsOf({ inboxId: id, archived: "true" })).toEqual([threadId]);
    await delivered(scene.service, { to: address, headers: [`In-Reply-To: ${message}`] });
    expect(await idsOf({ inboxId: id })).toEqual([threadId]);
    expect(await inbox()).toMatchObject([{ id: threadId, read: false, archived: false }]);
  });

  test("a thread can be marked as unread and brought back by the client", async () => {
    const { address } = await newInbox();
    const { threadId } = await deliveredRecord(scene.service, { to: address });
    await update(threadId, { read: true, archived: true });
    expect((await update(threadId, { read: false })).body).toMatchObject({ read: false, archived: true });
    expect((await update(threadId, { archived: false })).body).toMatchObject({
      read: false,
      archived: false,
    });
  });

  test("a thread refuses what is no boolean, and an unknown id", async () => {
    const { address } = await newInbox();
    const { threadId } = await deliveredRecord(scene.service, { to: address });
    const { status, body } = await update(threadId, { read: "yes" });
    expect([status, body.error.param]).toEqual([422, "read"]);
    expect((await update("thr_00000000000000000000000000", { read: true })).status).toBe(404);
  });
});
