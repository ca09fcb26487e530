import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { deliver, deliveredRecord, smtpSession } from "../support/mail-in.ts";
import { receivingInboxes, SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";

let service: TestService;
let catchAll: string;
let exact: string;
beforeAll(async () => {
  service = await startService();
  [catchAll = "", exact = ""] = await receivingInboxes(service, "any.test", ["*@any.test", "sales@any.test"]);
});
afterAll(() => service.stop());

const record = async (id: string) => (await service.call("GET", `/v1/emails/${id}`)).body;
const reply = async (threadId: string, body: Record<string, unknown> = {}) => {
  const answer = await service.call("POST", `/v1/threads/${threadId}/reply`, { text: "Yes", ...body });
  expect(answer).toMatchObject({ status: 202, body: { threadId } });
  return record(answer.body.id);
};

describe("a catch-all inbox", () => {
  test.each(["anybody@any.test", "Any.Body@ANY.test", "any+label@any.test", "abuse@any.test", "*@any.test"])(
    "gets the mail for %s, and the record shows that address",
    async (to) => {
      const arrived = await deliveredRecord(service, { to, headers: ["To: undisclosed-recipients:;"] });
      expect(arrived).toMatchObject({ inboxId: catchAll, envelope: { rcptTo: [to] } });
      expect(arrived.to).toEqual([to]);
    },
  );

  test.each(["sales@any.test", "SALES@any.test", "sales+web@any.test"])(
    "leaves mail for %s to the inbox of that very address",
    async (to) => {
      expect((await deliveredRecord(service, { to })).inboxId).toBe(exact);
    },
  );

  test("leaves mail for the postmaster to the role mailbox", async () => {
    expect((await deliveredRecord(service, { to: "postmaster@any.test" })).inboxId).toBeNull();
  });

  test.each(["b", "u"])("gets no report whose token %s+… was damaged on the way", async (prefix) => {
    const to = `${prefix}+${"0".repeat(48)}@any.test`;
    expect(await deliver(service, { to, mailFrom: "" })).toStartWith("550 5.1.1");
    expect(await deliver(service, { to: to.replace("0@", "@") })).toStartWith("250");
  });

  test("gets no bounce of a message that was sent from one of its addresses", async () => {
    const id = await service.send({ from: "news@any.test", to: `bounced@simulator.${SERVICE_DOMAIN}` });
    const before = (await service.call("GET", `/v1/inboxes/${catchAll}/threads`)).body.data.length;
    await service.message(id, "bounced");
    expect((await service.call("GET", `/v1/inboxes/${catchAll}/threads`)).body.data).toHaveLength(before);
  });

  test("is one inbox for all recipients of a transaction, which becomes one message", async () => {
    const to = ["one@any.test", "two@any.test", "sales@any.test"];
    const arrived = await deliveredRecord(service, { to });
    expect(arrived).toMatchObject({ inboxId: catchAll, envelope: { rcptTo: to.slice(0, 2) } });
  });

  test("takes simulated mail for any address of its domain", async () => {
    for (const [body, to] of [
      [{ to: "try@any.test" }, "try@any.test"],
      [{ inboxId: catchAll, to: "try@any.test" }, "try@any.test"],
      [{ inboxId: catchAll }, "anybody@any.test"],
      [{ inboxId: catchAll, to: "try@other.test" }, "anybody@any.test"],
    ] as const) {
      const made = await service.call("POST", "/v1/inbound/simulate", body);
      expect(made.status).toBe(202);
      expect(await record(made.body.messageId)).toMatchObject({ inboxId: catchAll, to: [to] });
    }
  });
});

describe("a reply from a catch-all", () => {
  test("comes from the address that was written to, and the conversation stays one thread", async () => {
    const arrived = await deliveredRecord(service, {
      to: "Orders+7@any.test",
      headers: ["To: Orders+7@any.test", "Message-ID: <order@client.test>"],
    });
    const answer = await reply(arrived.threadId);
    expect(answer).toMatchObject({
      from: "Orders+7@any.test",
      to: ["ada@client.test"],
      inboxId: catchAll,
      threadId: arrived.threadId,
    });
    const next = await deliveredRecord(service, {
      to: "Orders+7@any.test",
      headers: [`In-Reply-To: ${answer.messageId}`],
    });
    expect(next.threadId).toBe(arrived.threadId);
    // To the last message of the thread, and to the one that we sent.
    expect((await reply(arrived.threadId)).from).toBe("Orders+7@any.test");
    const again = await reply(arrived.threadId, { messageId: answer.id });
    expect([again.from, again.to]).toEqual(["Orders+7@any.test", ["ada@client.test"]]);
    const thread = (await service.call("GET", `/v1/threads/${arrived.threadId}`)).body;
    expect([thread.messageCount, thread.participants]).toEqual([5, ["ada@client.test"]]);
  });

  test("prefers the address that the header names to one in Bcc", async () => {
    const arrived = await deliveredRecord(service, {
      to: ["hidden@any.test", "shown@any.test"],
      headers: ["To: shown@any.test"],
    });
    expect((await reply(arrived.threadId)).from).toBe("shown@any.test");
  });

  test("to all goes to the inboxes of the domain that are not the catch-all's", async () => {
    const arrived = await deliveredRecord(service, {
      to: "help@any.test",
      headers: ["From: sales@any.test", "To: help@any.test, sales@any.test", "Cc: eve@client.test"],
    });
    const answer = await reply(arrived.threadId, { replyAll: true });
    expect([answer.to, answer.cc]).toEqual([["sales@any.test"], ["eve@client.test"]]);
  });

  test("stays in its thread and inbox after the address has become an inbox", async () => {
    const arrived = await deliveredRecord(service, { to: "later@any.test" });
    await service.call("POST", "/v1/inboxes", { address: "later@any.test" });
    const answer = await reply(arrived.threadId);
    expect(answer).toMatchObject({ from: "later@any.test", inboxId: catchAll });
    expect((await deliveredRecord(service, { to: "later@any.test" })).inboxId).not.toBe(catchAll);
  });

  test("joins the thread if it is sent as an email from an address of the domain", async () => {
    const arrived = await deliveredRecord(service, { to: "x@any.test", headers: ["Message-ID: <x@c.test>"] });
    const id = await service.send({ from: "y@any.test", headers: { "In-Reply-To": "<x@c.test>" } });
    expect(await record(id)).toMatchObject({ inboxId: catchAll, threadId: arrived.threadId });
  });
});

test("a catch-all at a domain in Unicode takes mail to its A-labels", async () => {
  const [id = ""] = await receivingInboxes(service, "bücher.test", ["*@BÜCHER.test"]);
  expect((await deliveredRecord(service, { to: "any@xn--bcher-kva.test" })).inboxId).toBe(id);
});

test.each(["a*@any.test", "*a@any.test", "**@any.test", "*+x@any.test", '"*"@any.test', "*@*.any.test"])(
  "an inbox cannot have the address %s, because only a sole asterisk stands for any address",
  async (address) => {
    const { status, body } = await service.call("POST", "/v1/inboxes", { address });
    expect([status, body.error.issues?.[0]?.code ?? body.error.code]).toEqual([422, "invalid_email"]);
  },
);

/** Writes to invented addresses of a domain until it is refused. Returns the refusal. */
async function flood(port: number, name: string): Promise<string> {
  const session = await smtpSession(port);
  try {
    for (let at = 0; at < MAX_FLOOD; at++) {
      await session.say("MAIL FROM:<eve@client.test>");
      const named = await session.say(`RCPT TO:<${name}${at}@flood.test>`);
      if (!named.startsWith("250")) return named;
      await session.say("DATA");
      const taken = await session.say(`From: eve@client.test\r\n\r\n${name}${at} ${randomText(4000)}\r\n.`);
      if (!taken.startsWith("250")) return taken;
    }
    return "250 all";
  } finally {
    session.end();
  }
}

/** Number of messages that a flood has. A project with `ROOM` octets takes about twenty. */
const MAX_FLOOD = 100;
const ROOM = 100_000;

const randomText = (octets: number): string =>
  randomBytes(octets / 2)
    .toString("hex")
    .replace(/.{76}/g, "$&\r\n");

test("a flood to a catch-all fills its own project, and the mail of other projects gets through", async () => {
  const flooded = await startService({ QUOTA_STORED_OCTETS: `none,${ROOM},none` });
  try {
    const account = { key: flooded.accountKey };
    const sender = (await flooded.call("POST", "/v1/senders", { name: "Target" }, account)).body;
    expect(sender.plan).toBe("pro");
    const made = { name: "Target", senderId: sender.id };
    const { secret: key } = (await flooded.call("POST", "/v1/api-keys", made, account)).body;
    await receivingInboxes(flooded, "calm.test", ["a@calm.test"]);
    await receivingInboxes(flooded, "flood.test", ["*@flood.test"], key);

    const floods = Array.from({ length: 8 }, (_, at) => flood(flooded.smtpPort, `s${at}.`));
    let over = false;
    const all = Promise.all(floods).finally(() => {
      over = true;
    });
    do {
      expect(await deliver(flooded, { to: "a@calm.test" })).toStartWith("250");
    } while (!over);
    for (const refusal of await all) expect(refusal).toStartWith("452 4.2.2");

    const { storedOctets } = (await flooded.call("GET", "/v1/quota", undefined, { key })).body.resources;
    expect(storedOctets.used).toBeLessThanOrEqual(ROOM);
    expect(await flood(flooded.smtpPort, "more")).toStartWith("452 4.2.2");
    expect(await deliver(flooded, { to: "a@calm.test" })).toStartWith("250");
  } finally {
    await flooded.stop();
  }
});

test("VRFY tells nobody which addresses are inboxes and which are a catch-all's", async () => {
  const session = await smtpSession(service.smtpPort);
  try {
    const exactly = await session.say("VRFY sales@any.test");
    expect(exactly).toStartWith("252 ");
    expect(await session.say("VRFY nobody@any.test")).toBe(exactly);
  } finally {
    session.end();
  }
});
