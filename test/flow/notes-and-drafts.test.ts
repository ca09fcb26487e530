import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { MAX_DRAFTS } from "../../src/store/drafts/drafts.ts";
import { MAX_NOTE_CHARS, MAX_NOTES } from "../../src/store/threads/notes.ts";
import { until } from "../support/poll.ts";
import { receivingInboxes, startService, type TestService } from "../support/service.ts";
import { type ShiftedClock, shiftedClock } from "../support/shifted-clock.ts";

setDefaultTimeout(60_000);

let service: TestService;
let clock: ShiftedClock;
let inboxId: string;
/** Keys that may only propose, and only send. */
let proposer: string;
let sender: string;

beforeAll(async () => {
  clock = shiftedClock();
  service = await startService({ CAPTURE_STRICT: "0" }, clock);
  [inboxId = ""] = await receivingInboxes(service, "in.test", ["support@in.test"]);
  [proposer, sender] = [await keyWith(["drafts:write"]), await keyWith(["emails:send"])] as [string, string];
});
afterAll(() => service.stop());

const call = (method: string, path: string, body?: unknown, key = service.projectKey, headers = {}) =>
  service.call(method, path, body, { key, headers });
const wide = (method: string, path: string, body?: unknown) => call(method, path, body, service.accountKey);

async function keyWith(scopes: string[]): Promise<string> {
  const { id: senderId } = (await call("GET", "/v1/me")).body.project;
  return (await wide("POST", "/v1/api-keys", { name: scopes.join(), scopes, senderId })).body.secret;
}
let count = 0;
async function arrived(body: Record<string, unknown> = {}): Promise<{ messageId: string; threadId: string }> {
  const given = { inboxId, subject: `Question ${++count}`, from: { email: "ada@client.test" }, ...body };
  return (await call("POST", "/v1/inbound/simulate", given)).body;
}
const thread = async (id: string) => (await call("GET", `/v1/threads/${id}`)).body;
const addNote = (threadId: string, text: string) => call("POST", `/v1/threads/${threadId}/notes`, { text });
const LETTER = { from: "shop@one.test", to: "ben@client.test", subject: "Offer", text: "Here it is" };
const saved = async (body: unknown = LETTER, key?: string) => {
  const { status, body: draft } = await call("POST", "/v1/drafts", body, key);
  if (status !== 201) throw new Error(JSON.stringify(draft));
  return draft;
};
const send = (id: string, body?: unknown, key?: string, headers?: object) =>
  call("POST", `/v1/drafts/${id}/send`, body, key, headers);
const messages = async (q: string) =>
  (await call("GET", `/v1/emails?q=${encodeURIComponent(q)}`)).body.data as { id: string }[];

describe("notes of a thread", () => {
  test("are shown in the conversation with their author, and leave with no message", async () => {
    const { threadId } = await arrived();
    const { status, body } = await addNote(threadId, "Call her\nback");
    expect([status, body]).toMatchObject([201, { text: "Call her\nback", author: { type: "key" } }]);
    await addNote(threadId, "Done");
    const shown = await thread(threadId);
    expect(shown.notes.map(({ text }: { text: string }) => text)).toEqual(["Call her\nback", "Done"]);
    expect(shown).toMatchObject({ messageCount: 1, messages: [{}] });
    const reply = await call("POST", `/v1/threads/${threadId}/reply`, { text: "Hello" });
    expect(JSON.stringify(await service.message(reply.body.id, "delivered"))).not.toContain("Call her");
  });

  test("are deleted one by one, and with their thread", async () => {
    const { threadId, messageId } = await arrived();
    const { body: note } = await addNote(threadId, "Mistaken");
    expect((await call("DELETE", `/v1/threads/${threadId}/notes/${note.id}`)).status).toBe(204);
    expect((await call("DELETE", `/v1/threads/${threadId}/notes/${note.id}`)).status).toBe(404);
    await addNote(threadId, "Kept");
    await call("DELETE", `/v1/emails/${messageId}`);
    expect((await call("GET", `/v1/threads/${threadId}`)).status).toBe(404);
    const left = "SELECT count(*) AS n FROM thread_notes WHERE thread_id = ?";
    expect(await service.app.db.first<{ n: number }>(left, [threadId])).toEqual({ n: 0 });
  });

  test("the audit trail says who wrote one, without its text", async () => {
    const { threadId } = await arrived();
    const { body: note } = await addNote(threadId, "Between us");
    const { data } = (await wide("GET", `/v1/audit-log?target=${note.id}`)).body;
    expect(data).toMatchObject([{ action: "note.create", changes: { threadId: [null, threadId] } }]);
    expect(JSON.stringify(data)).not.toContain("Between us");
  });

  test("a note has at most as many characters, and a thread as many notes, as the limits say", async () => {
    const { threadId } = await arrived();
    expect((await addNote(threadId, "x".repeat(MAX_NOTE_CHARS + 1))).status).toBe(422);
    expect((await addNote(threadId, "x".repeat(MAX_NOTE_CHARS))).status).toBe(201);
    await Promise.all(Array.from({ length: MAX_NOTES - 1 }, () => addNote(threadId, "x")));
    const over = await addNote(threadId, "one more");
    expect([over.status, over.body.error.param]).toEqual([403, "notes"]);
    expect((await addNote("thr_00000000000000000000000000", "x")).status).toBe(404);
  });
});

describe("a draft", () => {
  test("is a proposal of a key that cannot send, and a key that can sends it once", async () => {
    const { id, version } = await saved(LETTER, proposer);
    expect((await send(id, {}, proposer)).status).toBe(403);
    const sent = await send(id, { version }, sender);
    expect([sent.status, sent.body.status]).toEqual([202, "queued"]);
    expect(await service.message(sent.body.id, "delivered")).toMatchObject({
      subject: "Offer",
      text: "Here it is",
    });
    expect((await send(id, {}, sender)).status).toBe(404);
    expect((await call("GET", `/v1/drafts/${id}`)).status).toBe(404);
  });

  test("a repeated request with the same Idempotency-Key gets the same answer, and sends once", async () => {
    const { id } = await saved({ ...LETTER, subject: "Once only" });
    const headers = { "idempotency-key": "send-draft-1" };
    const answers = [await send(id, {}, sender, headers), await send(id, {}, sender, headers)];
    expect(answers.map(({ status }) => status)).toEqual([202, 202]);
    expect(answers[0]?.body.id).toBe(answers[1]?.body.id);
    expect(await messages("Once only")).toHaveLength(1);
  });

  test("of ten people who send it at once, one does", async () => {
    const { id } = await saved({ ...LETTER, subject: "Raced" });
    const answers = await Promise.all(Array.from({ length: 10 }, () => send(id)));
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 404 || status === 409)).toHaveLength(9);
    expect(await messages("Raced")).toHaveLength(1);
  });

  test("is not sent if it has changed since it was read", async () => {
    const { id, version } = await saved({ ...LETTER, subject: "Harmless" });
    const changed = await call("PUT", `/v1/drafts/${id}`, { ...LETTER, subject: "Changed" }, proposer);
    expect(changed.body).toMatchObject({ version: version + 1, subject: "Changed" });
    expect((await send(id, { version })).status).toBe(409);
    expect(await messages("Changed")).toEqual([]);
    expect((await send(id, { version: version + 1 })).status).toBe(202);
  });

  test("of two who change it as they read it, the second gets 409 and overwrites nothing", async () => {
    const { id, version } = await saved();
    const put = (subject: string, read: number) =>
      call("PUT", `/v1/drafts/${id}`, { ...LETTER, subject, version: read });
    expect((await put("First", version)).body).toMatchObject({ subject: "First", version: version + 1 });
    expect((await put("Second", version)).status).toBe(409);
    expect((await call("GET", `/v1/drafts/${id}`)).body.subject).toBe("First");
    expect((await put("Third", version + 1)).status).toBe(200);
  });

  test("stays if its message is refused, and the answer names what it lacks", async () => {
    const { id } = await saved({ text: "Only this yet" });
    const refused = await send(id);
    expect(refused.status).toBe(422);
    expect(refused.body.error.issues.map(({ param }: { param: string }) => param)).toContain("from");
    expect((await call("GET", `/v1/drafts/${id}`)).body).toMatchObject({ text: "Only this yet" });
  });

  test("in a thread is a reply, whose recipients and subject it may replace", async () => {
    const { threadId, messageId } = await arrived({ cc: [{ email: "cy@client.test" }] });
    const plain = await saved({ threadId, text: "First" }, proposer);
    const first = await service.message((await send(plain.id)).body.id, "delivered");
    expect(first).toMatchObject({ threadId, addresses: { to: [{ email: "ada@client.test" }], cc: [] } });
    expect(first.subject).toStartWith("Re: Question");
    const other = await saved({
      threadId,
      messageId,
      to: "dan@client.test",
      subject: "Other",
      text: "Second",
    });
    expect(await service.message((await send(other.id)).body.id, "delivered")).toMatchObject({
      threadId,
      addresses: { to: [{ email: "dan@client.test" }] },
      subject: "Other",
    });
    const listed = (await call("GET", `/v1/drafts?threadId=${threadId}`)).body.data;
    expect(listed).toEqual([]);
  });

  test("half of a character in the subject is replaced, and so the list of drafts can be read", async () => {
    const { id } = await saved({ ...LETTER, subject: "\udc00", text: "\ud800" });
    const listed = (await call("GET", "/v1/drafts")).body.data;
    expect(listed.find((draft: { id: string }) => draft.id === id)).toMatchObject({
      subject: "\ufffd",
      preview: "\ufffd",
    });
  });

  test.each([
    ["from", { from: "a@one.test" }],
    ["stream", { stream: "bulk" }],
    ["scheduledAt", { scheduledAt: "2099-01-01T00:00:00Z" }],
  ])("in a thread cannot have %s, which the thread decides about", async (param, more) => {
    const { threadId } = await arrived();
    const refused = await call("POST", "/v1/drafts", { threadId, text: "x", ...more });
    expect([refused.status, refused.body.error.param]).toEqual([422, param]);
  });

  test("with a field that resembles a decisive one is refused", async () => {
    const refused = await call("POST", "/v1/drafts", { ...LETTER, scheduled_at: "2099-01-01T00:00:00Z" });
    expect([refused.status, refused.body.error.param]).toEqual([422, "scheduled_at"]);
  });

  test("a list shows who wrote it, to whom, and the beginning of its text", async () => {
    const { threadId } = await arrived();
    const { id } = await saved({
      threadId,
      to: ["Ben <ben@b.test>", { email: "c@c.test" }],
      text: "x".repeat(999),
    });
    const [shown] = (await call("GET", `/v1/drafts?threadId=${threadId}`)).body.data;
    expect(shown).toMatchObject({
      id,
      threadId,
      to: ["Ben <ben@b.test>", "c@c.test"],
      author: { type: "key" },
    });
    expect(shown.preview).toHaveLength(200);
  });

  test("is listed by the inbox of its thread and by who wrote it, with the thread's subject", async () => {
    const { threadId } = await arrived();
    const { inboxId, subject } = (await call("GET", `/v1/threads/${threadId}`)).body;
    const { id, author } = await saved({ threadId, text: "x" });
    const { id: other } = await saved(LETTER);
    const listed = async (query: string) =>
      (await call("GET", `/v1/drafts?limit=2&${query}`)).body.data.map((draft: { id: string }) => draft.id);
    expect(await listed(`authorId=${author.id}`)).toEqual([other, id]);
    expect(await listed("authorType=key")).toEqual([other, id]);
    expect([await listed("authorType=member"), await listed("authorId=mem_1")]).toEqual([[], []]);
    expect((await listed(`inboxId=${inboxId}`))[0]).toBe(id);
    expect((await call("GET", `/v1/drafts?threadId=${threadId}`)).body.data[0].subject).toBe(subject);
  });

  test("goes with its thread, and is not there for another project", async () => {
    const { threadId, messageId } = await arrived();
    const { id } = await saved({ threadId, text: "x" });
    await call("DELETE", `/v1/emails/${messageId}`);
    expect((await call("GET", `/v1/drafts/${id}`)).status).toBe(404);
    expect(
      (await call("POST", "/v1/drafts", { threadId: "thr_00000000000000000000000000", text: "x" })).status,
    ).toBe(404);
  });

  test("a project has as many drafts as the limit says", async () => {
    const own = (await wide("POST", "/v1/senders", { name: "Many", externalId: "many" })).body;
    const post = () =>
      service.call(
        "POST",
        "/v1/drafts",
        { text: "x" },
        {
          key: service.accountKey,
          headers: { "x-service-product": own.externalId },
        },
      );
    for (let made = 0; made < MAX_DRAFTS; made += 50) {
      const answers = await Promise.all(Array.from({ length: 50 }, post));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
      // The key's requests of a second are used up.
      clock.shift(10_000);
    }
    const over = await post();
    expect([over.status, over.body.error.param]).toEqual([403, "drafts"]);
  });
});

describe("a send with undoSeconds", () => {
  test("waits for that time, and can be canceled until then", async () => {
    const { body } = await call("POST", "/v1/emails", { ...LETTER, undoSeconds: 10 });
    expect(body).toMatchObject({ status: "accepted", scheduledAt: expect.any(String) });
    expect((await call("POST", `/v1/emails/${body.id}/cancel`)).status).toBe(200);
    expect((await call("GET", `/v1/emails/${body.id}`)).body.status).toBe("failed");
  });

  test("leaves after it, also as a reply and from a draft", async () => {
    const { threadId } = await arrived();
    const draft = await saved({ threadId, text: "x", undoSeconds: 60 });
    const ids = [
      (await call("POST", `/v1/threads/${threadId}/reply`, { text: "x", undoSeconds: 60 })).body.id,
      (await send(draft.id)).body.id,
    ];
    for (const id of ids) expect((await call("GET", `/v1/emails/${id}`)).body.status).toBe("accepted");
    clock.shift(60_000);
    for (const id of ids) await service.message(id, "delivered");
  });

  test.each([
    [{ undoSeconds: 61 }, "undoSeconds"],
    [{ undoSeconds: 1, scheduledAt: "2099-01-01T00:00:00Z" }, "undoSeconds"],
  ])("%j is refused", async (more, param) => {
    const { status, body } = await call("POST", "/v1/emails", { ...LETTER, ...more });
    expect([status, body.error.issues.map((issue: { param: string }) => issue.param)]).toEqual([
      422,
      expect.arrayContaining([param]),
    ]);
  });
});

describe("forwarding a message", () => {
  const forward = (id: string, body: object, key?: string) =>
    call("POST", `/v1/emails/${id}/forward`, body, key);
  const file = {
    filename: "a.txt",
    content: Buffer.from("a file").toString("base64"),
    contentType: "text/plain",
  };

  test("inline has our words, the header and text of the original, and its files, in its thread", async () => {
    const { threadId, messageId } = await arrived({
      subject: "Fw: An order",
      text: "The text",
      html: "<p>The <b>html</b></p>",
      attachments: [file],
    });
    const { status, body } = await forward(messageId, { to: "ben@other.test", text: "See <below>" });
    expect(status).toBe(202);
    const sent = await service.message(body.id, "delivered");
    expect(sent).toMatchObject({
      threadId,
      subject: "Fwd: An order",
      addresses: { to: [{ email: "ben@other.test" }] },
    });
    expect(sent.text).toMatch(
      /^See <below>\n\n-+ Forwarded message -+\nFrom: ada@client\.test\n[\s\S]*\n\nThe text\n$/,
    );
    expect(sent.html).toStartWith("<div>See &lt;below&gt;</div>");
    expect(sent.html).toEndWith("<p>The <b>html</b></p>\n");
    const [{ id, filename }] = sent.attachments;
    expect([filename, (await call("GET", `/v1/emails/${sent.id}/attachments/${id}`)).body]).toEqual([
      "a.txt",
      "a file",
    ]);
  });

  test("as an attachment has the whole original as one file", async () => {
    const { messageId } = await arrived({ subject: "Whole/one", text: "The text" });
    const raw = (await call("GET", `/v1/emails/${messageId}/raw`)).body;
    const { body } = await forward(messageId, { to: "ben@other.test", as: "attachment", undoSeconds: 1 });
    clock.shift(2000);
    const sent = await service.message(body.id, "delivered");
    expect(sent.attachments).toMatchObject([{ filename: "Whole one.eml", contentType: "message/rfc822" }]);
    const path = `/v1/emails/${sent.id}/attachments/${sent.attachments[0].id}`;
    expect((await call("GET", path)).body).toBe(raw);
    // RFC 2046 §5.2.1: no encoding but 7bit, 8bit or binary.
    const wire = (await call("GET", `/v1/emails/${sent.id}/raw`)).body as string;
    const part = wire.slice(wire.indexOf("message/rfc822"));
    expect(part.slice(0, part.indexOf("\r\n\r\n"))).not.toMatch(/base64|quoted-printable/i);
  });

  test("needs the right to read as well as to send", async () => {
    const { messageId } = await arrived();
    expect((await forward(messageId, { to: "ben@other.test" }, sender)).body.error.param).toBe("emails:read");
    const both = await keyWith(["emails:send", "emails:read"]);
    expect((await forward(messageId, { to: "ben@other.test" }, both)).status).toBe(202);
  });

  test("of what was sent goes from its author", async () => {
    const id = await service.send({ ...LETTER, subject: "Ours" });
    await service.message(id, "delivered");
    const { body } = await forward(id, { to: "cy@other.test" });
    expect(await service.message(body.id, "delivered")).toMatchObject({
      addresses: { from: { email: "shop@one.test" } },
      subject: "Fwd: Ours",
    });
  });

  test("of no message of the project is not found", async () => {
    expect((await forward("msg_00000000000000000000000000", { to: "ben@other.test" })).status).toBe(404);
  });
});

test("the signature of an inbox is kept for the dashboard, and is in no send of the API", async () => {
  const path = `/v1/inboxes/${inboxId}`;
  expect((await call("PATCH", path, { signature: "Ana\nAcme" })).body.signature).toBe("Ana\nAcme");
  expect((await call("PATCH", path, { displayName: "Help" })).body.signature).toBe("Ana\nAcme");
  const { threadId } = await arrived();
  const { body } = await call("POST", `/v1/threads/${threadId}/reply`, { text: "Hi" });
  expect((await service.message(body.id, "delivered")).text).toBe("Hi");
  expect((await call("PATCH", path, { signature: "x".repeat(2001) })).status).toBe(422);
  await until(async () => (await call("GET", path)).body.displayName === "Help");
});
