import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { publish } from "../support/dns.ts";
import { inboxService } from "../support/inbox-service.ts";
import { deliver, delivered, deliveredRecord, letterLines, smtpSession } from "../support/mail-in.ts";
import { receivingInboxes, verifiedDomain } from "../support/service.ts";

setDefaultTimeout(60_000);

const scene = inboxService();
const { newInbox } = scene;
let count = 0;

/** A new domain with one inbox, and a switch for its receiving. */
async function newDomain() {
  const name = `d${++count}.test`;
  const [inboxId = ""] = await receivingInboxes(scene.service, name, [`box@${name}`]);
  const inbox = (await scene.service.call("GET", `/v1/inboxes/${inboxId}`)).body;
  const path = `/v1/domains/${inbox.domainId}`;
  const receive = (enabled: boolean) => scene.service.call("PATCH", `${path}/receiving`, { enabled });
  return { inbox, path, name, receive };
}

describe("an inbox gets mail", () => {
  test.each([
    ["to its address", (local: string) => `${local}@in.test`],
    ["in any case", (local: string) => `${local.toUpperCase()}@IN.Test`],
    ["with a label", (local: string) => `${local}+ticket-17@in.test`],
    ["with a label that has a plus", (local: string) => `${local}+a+b@in.test`],
    ["with an empty label", (local: string) => `${local}+@in.test`],
  ])("%s", async (_, form) => {
    const { id, address } = await newInbox();
    const to = form(address.replace("@in.test", ""));
    const record = await deliveredRecord(scene.service, { to });
    expect(record).toMatchObject({ inboxId: id, envelope: { rcptTo: [to] } });
  });

  test.each([
    ["a dot more", (local: string) => `${local}.x@in.test`],
    ["a label alone", () => "+label@in.test"],
    ["a minus for the plus", (local: string) => `${local}-x@in.test`],
    ["a domain below", (local: string) => `${local}@sub.in.test`],
  ])("an inbox gets no mail to an address with %s", async (_, form) => {
    const { address } = await newInbox();
    expect(await deliver(scene.service, { to: form(address.replace("@in.test", "")) })).toStartWith(
      "550 5.1.",
    );
  });

  test("simulated at an address with a label, as over SMTP", async () => {
    const { id, address } = await newInbox();
    const to = address.replace("@", "+x@").toUpperCase();
    const simulated = await scene.service.call("POST", "/v1/inbound/simulate", { to });
    const record = (await scene.service.call("GET", `/v1/emails/${simulated.body.messageId}`)).body;
    expect(record.inboxId).toBe(id);
  });

  test("an inbox gets mail in its name and its domain's Unicode forms", async () => {
    const id = await verifiedDomain(scene.service, "bücher.test");
    const receiving = await scene.service.call("PATCH", `/v1/domains/${id}/receiving`, { enabled: true });
    publish(scene.service.dns, receiving.body.records);
    const made = await scene.service.call("POST", "/v1/inboxes", { address: "Info@BÜCHER.test" });
    expect(made).toMatchObject({
      status: 201,
      body: { address: "info@xn--bcher-kva.test", domainId: id },
    });
    expect((await deliveredRecord(scene.service, { to: made.body.address })).inboxId).toBe(made.body.id);
  });
});

describe("a domain that stops receiving", () => {
  test("a domain that stops receiving refuses at RCPT, keeps inboxes and threads, and accepts again later", async () => {
    const { inbox, name, receive } = await newDomain();
    const message = `<before@${name}>`;
    const before = await deliveredRecord(scene.service, {
      to: inbox.address,
      headers: [`Message-ID: ${message}`],
    });
    expect((await receive(false)).body.enabled).toBe(false);
    expect(await deliver(scene.service, { to: inbox.address })).toStartWith("550 5.1.2");
    expect((await scene.service.call("GET", `/v1/inboxes?domainId=${inbox.domainId}`)).body.data).toEqual([
      inbox,
    ]);
    const { data } = (await scene.service.call("GET", `/v1/inboxes/${inbox.id}/threads`)).body;
    expect(data).toMatchObject([{ id: before.threadId, messageCount: 1 }]);
    expect(
      (await scene.service.call("POST", `/v1/threads/${before.threadId}/reply`, { text: "x" })).status,
    ).toBe(202);
    expect((await receive(true)).body.enabled).toBe(true);
    const after = await deliveredRecord(scene.service, {
      to: inbox.address,
      headers: [`In-Reply-To: ${message}`],
    });
    expect(after.threadId).toBe(before.threadId);
  });

  test("a domain that stops receiving refuses at the end of DATA a recipient accepted at RCPT", async () => {
    const { inbox, receive } = await newDomain();
    const session = await smtpSession(scene.service.smtpPort);
    await session.say("MAIL FROM:<ada@client.test>");
    expect(await session.say(`RCPT TO:<${inbox.address}>`)).toStartWith("250");
    expect(await session.say("DATA")).toStartWith("354");
    await receive(false);
    const letter = `${letterLines({ to: inbox.address }).join("\r\n")}\r\n.`;
    expect(await session.say(letter)).toStartWith("550 5.1.");
    await receive(true);
    await session.say("MAIL FROM:<ada@client.test>");
    await session.say(`RCPT TO:<${inbox.address}>`);
    await session.say("DATA");
    expect(await session.say(letter)).toStartWith("250");
    session.end();
    const { data } = (await scene.service.call("GET", `/v1/inboxes/${inbox.id}/threads`)).body;
    expect(data.length).toBe(1);
  });

  test("defers a message that has other inboxes too, so that RCPT then refuses only the right one", async () => {
    const { inbox, receive } = await newDomain();
    const other = await newInbox();
    const session = await smtpSession(scene.service.smtpPort);
    for (const line of [
      "MAIL FROM:<ada@client.test>",
      `RCPT TO:<${inbox.address}>`,
      `RCPT TO:<${other.address}>`,
    ])
      expect(await session.say(line)).toStartWith("250");
    await session.say("DATA");
    await receive(false);
    expect(await session.say(`${letterLines({ to: "" }).join("\r\n")}\r\n.`)).toStartWith("451 4.3.0");
    session.end();
    expect(await deliver(scene.service, { to: inbox.address })).toStartWith("550");
    expect(await deliver(scene.service, { to: other.address })).toStartWith("250");
    const threads = async (id: string) =>
      (await scene.service.call("GET", `/v1/inboxes/${id}/threads`)).body.data.length;
    expect([await threads(inbox.id), await threads(other.id)]).toEqual([0, 1]);
  });
});

describe("an inbox at a domain", () => {
  test("an inbox at a domain that is not verified, or does not receive, can be made and gets no mail over SMTP yet", async () => {
    const made = await scene.service.call("POST", "/v1/domains", { domain: "pending.example.com" });
    const inbox = await scene.service.call("POST", "/v1/inboxes", {
      localPart: "box",
      domainId: made.body.id,
    });
    expect([inbox.status, inbox.body.warnings]).toMatchObject([
      201,
      [{ message: expect.stringContaining(`POST /v1/domains/${made.body.id}/verify`) }],
    ]);
    expect(await deliver(scene.service, { to: "box@pending.example.com" })).toStartWith("550 5.1.2");
    expect(
      await scene.service.call("PATCH", `/v1/domains/${made.body.id}/receiving`, { enabled: true }),
    ).toMatchObject({
      status: 409,
      body: { error: { code: "invalid_state" } },
    });
    const simulated = await scene.service.call("POST", "/v1/inbound/simulate", { inboxId: inbox.body.id });
    expect(simulated.status).toBe(202);
  });

  test("an inbox at a domain keeps the domain from being deleted until it is gone", async () => {
    const { inbox, path } = await newDomain();
    expect(await scene.service.call("DELETE", path)).toMatchObject({
      status: 409,
      body: { error: { type: "conflict", code: "invalid_state" } },
    });
    expect((await scene.service.call("DELETE", `/v1/inboxes/${inbox.id}`)).status).toBe(204);
    expect((await scene.service.call("DELETE", path)).status).toBe(204);
    expect(await deliver(scene.service, { to: inbox.address })).toStartWith("550 5.1.2");
  });
});

describe("deleting an inbox", () => {
  test("deleting an inbox is a conflict once mail came over SMTP, even after receiving was disabled", async () => {
    const { inbox, receive } = await newDomain();
    const { threadId } = await deliveredRecord(scene.service, { to: inbox.address });
    await receive(false);
    expect(await scene.service.call("DELETE", `/v1/inboxes/${inbox.id}`)).toMatchObject({
      status: 409,
      body: { error: { type: "conflict", code: "invalid_state" } },
    });
    expect((await scene.service.call("GET", `/v1/threads/${threadId}`)).status).toBe(200);
  });

  test("deleting an inbox is allowed if it had only simulated and sent mail, and removes their threads", async () => {
    const { id, address } = await newInbox();
    const simulated = await scene.service.call("POST", "/v1/inbound/simulate", {
      inboxId: id,
      inReplyTo: "<unknown@client.test>",
    });
    const { threadId } = simulated.body;
    expect((await scene.service.call("POST", `/v1/threads/${threadId}/reply`, { text: "x" })).status).toBe(
      202,
    );
    expect((await scene.service.call("DELETE", `/v1/inboxes/${id}`)).status).toBe(204);
    expect((await scene.service.call("GET", `/v1/threads/${threadId}`)).status).toBe(404);
    expect((await scene.service.call("POST", `/v1/threads/${threadId}/reply`, { text: "x" })).status).toBe(
      404,
    );
    expect(await scene.service.call("GET", `/v1/emails/${simulated.body.messageId}`)).toMatchObject({
      status: 200,
      body: { threadId: null, inboxId: null },
    });
    expect(await deliver(scene.service, { to: address })).toStartWith("550 5.1.1");
    const anew = await scene.service.call("POST", "/v1/inboxes", { address });
    expect(anew.status).toBe(201);
    const headers = ["In-Reply-To: <unknown@client.test>"];
    expect((await deliveredRecord(scene.service, { to: address, headers })).threadId).not.toBe(threadId);
    expect((await scene.service.call("GET", `/v1/inboxes/${anew.body.id}/threads`)).body.data.length).toBe(1);
  });

  test("while a message for it arrives refuses one of the two", async () => {
    const { id, address } = await newInbox();
    const [reply, deleted] = await Promise.all([
      deliver(scene.service, { to: address }),
      scene.service.call("DELETE", `/v1/inboxes/${id}`),
    ]);
    const inbox = await scene.service.call("GET", `/v1/inboxes/${id}`);
    expect([reply.startsWith("250"), deleted.status, inbox.status]).toEqual(
      inbox.status === 200 ? [true, 409, 200] : [false, 204, 404],
    );
  });
});

describe("a send from an inbox", () => {
  test("a send from an inbox has its name and type changed by PATCH for later replies", async () => {
    const { id, address } = await newInbox();
    const { threadId } = await deliveredRecord(scene.service, { to: address });
    const changed = await scene.service.call("PATCH", `/v1/inboxes/${id}`, {
      displayName: "Ümit, Desk",
      type: "sending",
    });
    expect(changed.body).toMatchObject({ id, address, displayName: "Ümit, Desk", type: "sending" });
    const sent = await scene.service.call("POST", `/v1/threads/${threadId}/reply`, { text: "x" });
    const record = (await scene.service.call("GET", `/v1/emails/${sent.body.id}`)).body;
    expect(record).toMatchObject({ from: address, fromName: "Ümit, Desk" });
  });

  test.each([
    ["joins the thread that its In-Reply-To names", "BOX@in.test", "In-Reply-To", "<ID>", true],
    ["joins the thread that it names without angle brackets", "BOX@in.test", "In-Reply-To", "ID", true],
    ["joins the thread that its References name", "BOX@in.test", "references", "<ID>", true],
    ["joins from an address with a label, too", "BOX+sales@in.test", "In-Reply-To", "<ID>", true],
    ["starts a thread if it names no known message", "BOX@in.test", "X-Other", "<ID>", false],
  ])("%s", async (_, from, field, value, joins) => {
    const { id, address } = await newInbox();
    const message = `s${++count}@client.test`;
    const { threadId } = await deliveredRecord(scene.service, {
      to: address,
      headers: [`Message-ID: <${message}>`],
    });
    const sent = await scene.service.call("POST", "/v1/emails", {
      from: { email: from.replace("BOX", address.replace("@in.test", "")) },
      to: [{ email: "ada@client.test" }],
      subject: "Hello",
      text: "x",
      headers: { [field]: value.replace("ID", message) },
    });
    const record = (await scene.service.call("GET", `/v1/emails/${sent.body.id}`)).body;
    expect(record.inboxId).toBe(id);
    expect(record.threadId === threadId).toBe(joins);
    const thread = (await scene.service.call("GET", `/v1/threads/${record.threadId}`)).body;
    expect(thread).toMatchObject({ participants: ["ada@client.test"], lastMessageId: record.id });
    expect(thread.lastInboundAt === null).toBe(!joins);
  });

  test("a send from an inbox of another address of the domain has no thread", async () => {
    const sent = await scene.service.call("POST", "/v1/emails", {
      from: { email: "nobox@in.test" },
      to: [{ email: "ada@client.test" }],
      subject: "Hello",
      text: "x",
    });
    const record = (await scene.service.call("GET", `/v1/emails/${sent.body.id}`)).body;
    expect([record.inboxId, record.threadId]).toEqual([null, null]);
  });
});

test("mail to several inboxes makes a thread in each", async () => {
  const [a, b] = [await newInbox(), await newInbox()];
  await delivered(scene.service, { to: [a.address, b.address] });
  for (const { id } of [a, b])
    expect((await scene.service.call("GET", `/v1/inboxes/${id}/threads`)).body.data).toMatchObject([
      { inboxId: id },
    ]);
});

describe("an inbox that is deleted while", () => {
  /** Deletes the inbox between the reads of an operation and its next write. */
  function deletedBeforeNextWrite({ id }: { id: string }): void {
    const { db } = scene.service.app;
    const write = db.write;
    db.write = async (statements) => {
      // The use of a key is written in between, for example.
      if (!statements.some(({ sql }) => sql.includes("INSERT INTO messages ")))
        return write.call(db, statements);
      db.write = write;
      await db.write([{ sql: "DELETE FROM inboxes WHERE id = ?", args: [id] }]);
      return db.write(statements);
    };
  }

  test("a message is simulated in it gives 404", async () => {
    const box = await newInbox();
    deletedBeforeNextWrite(box);
    const answer = await scene.service.call("POST", "/v1/inbound/simulate", { inboxId: box.id, text: "x" });
    expect(answer).toMatchObject({ status: 404, body: { error: { type: "not_found" } } });
  });

  test("a message arrives for it is not logged as our failure", async () => {
    const box = await newInbox();
    deletedBeforeNextWrite(box);
    expect(await deliver(scene.service, { to: box.address })).toStartWith("451 4.3.0 A recipient");
    expect(await deliver(scene.service, { to: box.address })).toStartWith("550 5.1.1");
  });

  test("a message arrives for it defers the message, if the inbox is made again", async () => {
    const { address, id } = await newInbox();
    const session = await smtpSession(scene.service.smtpPort);
    const commands = ["MAIL FROM:<ada@client.test>", `RCPT TO:<${address}>`, "DATA"];
    for (const command of commands) expect(await session.say(command)).toMatch(/^[23]/);
    expect((await scene.service.call("DELETE", `/v1/inboxes/${id}`)).status).toBe(204);
    const anew = (await scene.service.call("POST", "/v1/inboxes", { address })).body;
    expect(await session.say(`${letterLines({ to: address }).join("\r\n")}\r\n.`)).toStartWith("451 4.3.0");
    session.end();
    expect(await deliveredRecord(scene.service, { to: address })).toMatchObject({ inboxId: anew.id });
  });

  test("its address sends does not stop the message, which then belongs to no inbox", async () => {
    const box = await newInbox();
    const to = [{ email: "ada@client.test" }];
    const item = { from: { email: box.address }, to, subject: "Hello", text: "x" };
    deletedBeforeNextWrite(box);
    const { status, body } = await scene.service.call("POST", "/v1/emails", item);
    expect(status).toBe(202);
    expect((await scene.service.call("GET", `/v1/emails/${body.id}`)).body.inboxId).toBeNull();
  });
});
