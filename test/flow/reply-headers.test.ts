import { describe, expect, test } from "bun:test";
import { MAX_REFERENCES } from "../../src/flows/accept/reply.ts";
import { inboxService } from "../support/inbox-service.ts";
import { deliveredRecord } from "../support/mail-in.ts";

const scene = inboxService();
const { newInbox, newMessageId, replied, answerTo } = scene;

describe("the subject of a reply", () => {
  test.each([
    ["Help", "Re: Help"],
    ["Re: Help", "Re: Help"],
    ["RE: re:Re : Help", "Re: Help"],
    ["Re[2]: Help", "Re: Help"],
    ["Re^3: Re(4): Help", "Re: Help"],
    ["AW: Antw: Sv: VS: Help", "Re: Help"],
    ["=?UTF-8?B?5Zue5aSN77yaSGVscA==?=", "Re: Help"],
    ["Antwort: Odg: Help", "Re: Help"],
    ["رد: 答覆：답장: Відп: Help", "Re: Help"],
    ["Fwd: Re: Help", "Re: Fwd: Re: Help"],
    ["Regarding: Help", "Re: Regarding: Help"],
    ["Re-sent: Help", "Re: Re-sent: Help"],
    ["", "Re:"],
    ["Re:", "Re:"],
  ])("the subject of a reply to %j is %j", async (subject, wanted) => {
    expect((await answerTo([`Subject: ${subject}`])).subject).toBe(wanted);
  });

  test("the subject of a reply is cut to the limit of a send, without half of a character", async () => {
    const emoji = Buffer.from("😀".repeat(600)).toString("base64");
    const { subject } = await answerTo([`Subject: =?UTF-8?B?${emoji}?=`]);
    expect(subject).toBe(`Re: ${"😀".repeat(497)}`);
    expect((await answerTo([`Subject: ${"x".repeat(1200)}`])).subject).toBe(`Re: ${"x".repeat(994)}`);
  });
});

/** In-Reply-To and References of a sent message, unfolded. */
async function wireFields(id: string): Promise<string[]> {
  await scene.service.message(id, "delivered");
  const raw: string = (await scene.service.call("GET", `/v1/emails/${id}/raw`)).body;
  const fields = raw
    .slice(0, raw.indexOf("\r\n\r\n"))
    .replace(/\r\n[ \t]/g, " ")
    .split("\r\n");
  return fields.filter((field) => /^(?:in-reply-to|references):/i.test(field));
}

describe("the references of a reply", () => {
  test("the references of a reply name the answered message and all before it, on the wire too", async () => {
    const { address } = await newInbox({ displayName: "Müller & Söhne" });
    const [root, parent] = [newMessageId(), newMessageId()];
    const headers = [`Message-ID: ${parent}`, `References: ${root} ${parent}`, `In-Reply-To: ${root}`];
    const { threadId } = await deliveredRecord(scene.service, { to: address, headers });
    const client = { "in-reply-to": "<mine@x.test>", REFERENCES: "<mine@x.test>", "X-Own": "1" };
    const { id } = await replied(threadId, { headers: client });
    const record = await scene.service.message(id, "delivered");
    expect(record).toMatchObject({
      fromName: "Müller & Söhne",
      headers: { "In-Reply-To": parent, References: `${root} ${parent}`, "X-Own": "1" },
    });
    expect(await wireFields(id)).toEqual([`In-Reply-To: ${parent}`, `References: ${root} ${parent}`]);
  });

  // RFC 5322 §3.6.4
  test("the references of a reply name the message that the answered one answers, if it has no references", async () => {
    const [root, parent] = [newMessageId(), newMessageId()];
    const { id } = await answerTo([`Message-ID: ${parent}`, `In-Reply-To: ${root}`]);
    expect(await wireFields(id)).toEqual([`In-Reply-To: ${parent}`, `References: ${root} ${parent}`]);
  });

  test("the references of a reply name the message that our own one answered, if the reply follows our own", async () => {
    const { address } = await newInbox();
    const { body } = await scene.service.call("POST", "/v1/emails", {
      from: { email: address },
      to: [{ email: "ada@client.test" }],
      subject: "Hi",
      text: "x",
      headers: { "In-Reply-To": "<asked@client.test>" },
    });
    const { threadId, messageId } = await scene.service.message(body.id, "delivered");
    const { id } = await replied(threadId, {});
    expect(await wireFields(id)).toEqual([
      `In-Reply-To: ${messageId}`,
      `References: <asked@client.test> ${messageId}`,
    ]);
  });

  test("the references of a reply are the first and the newest of many, in lines of at most 998 octets", async () => {
    const ids = Array.from({ length: 90 }, (_, at) => `<${"y".repeat(100 + at)}@client.test>`);
    const parent = newMessageId();
    const { id } = await answerTo([`Message-ID: ${parent}`, `References: ${ids.join("\r\n ")}`]);
    const record = await scene.service.message(id, "delivered");
    const kept: string[] = record.headers.References.split(" ");
    expect(kept.length).toBe(MAX_REFERENCES);
    expect(kept).toEqual([...ids.slice(0, 1), ...ids.slice(2 - MAX_REFERENCES), parent]);
    const raw: string = (await scene.service.call("GET", `/v1/emails/${id}/raw`)).body;
    expect(Math.max(...raw.split("\r\n").map((line) => line.length))).toBeLessThanOrEqual(998);
  });

  test("fit the size of a header value, however long the ids are", async () => {
    const long = (at: number): string => `<${`${at}`.padEnd(900, "z")}@client.test>`;
    const parent = newMessageId();
    const ids = Array.from({ length: 10 }, (_, at) => long(at));
    const { headers } = await answerTo([`Message-ID: ${parent}`, `References: ${ids.join("\r\n ")}`]);
    expect(headers.References.split(" ")).toEqual([long(0), long(7), long(8), long(9), parent]);
  });

  test("the references of a reply are the first and the newest of a field longer than the record shows", async () => {
    const parent = newMessageId();
    const ids = Array.from({ length: 1500 }, (_, at) => `<${`${at}`.padStart(40, "q")}@client.test>`);
    const { headers } = await answerTo([`Message-ID: ${parent}`, `References: ${ids.join("\r\n ")}`]);
    expect(headers.References.split(" ")).toEqual([
      ...ids.slice(0, 1),
      ...ids.slice(2 - MAX_REFERENCES),
      parent,
    ]);
  });

  test("the references of a reply are on the wire if the answered message has a Message-ID as long as a line allows", async () => {
    const parent = `<${"i".repeat(997 - "<@client.test>".length)}@client.test>`;
    const { id } = await answerTo([`Message-ID: ${parent}`]);
    expect(await wireFields(id)).toEqual([`In-Reply-To: ${parent}`, `References: ${parent}`]);
  });

  test.each([
    ["are whole in a mail with SMTPUTF8", "jürgen@client.test", ["<a@jürgen-pc>", "<b@client.test>"]],
    ["are left out whole if they would be beyond ASCII", "j@client.test", ["<b@client.test>"]],
  ])("%s", async (_, author, kept) => {
    const { id, headers } = await answerTo([
      `From: ${author}`,
      "Message-ID: <c@jürgen-pc>",
      "References: <a@jürgen-pc> <b@client.test>",
    ]);
    expect(headers["In-Reply-To"]).toBe("<c@jürgen-pc>");
    const whole = author.startsWith("jü");
    expect(await wireFields(id)).toEqual([
      ...(whole ? ["In-Reply-To: <c@jürgen-pc>"] : []),
      `References: ${[...kept, ...(whole ? ["<c@jürgen-pc>"] : [])].join(" ")}`,
    ]);
  });

  test("the references of a reply are empty if the answered message has no Message-ID", async () => {
    expect((await answerTo(["References: <x@client.test>"])).headers).toEqual({});
  });
});

describe("the headers of a client in a reply", () => {
  test.each([
    [50, 202],
    [51, 422],
  ])("%i of them are %i, whatever the service adds", async (count, status) => {
    const { address } = await newInbox();
    const { threadId } = await deliveredRecord(scene.service, {
      to: address,
      headers: [`Message-ID: ${newMessageId()}`],
    });
    const headers = Object.fromEntries(Array.from({ length: count }, (_, at) => [`X-${at}`, "v"]));
    const answer = await scene.reply(threadId, { headers: { ...headers, "In-Reply-To": "<mine@x.test>" } });
    expect(answer.status).toBe(status);
    if (status === 422) expect(answer.body.error).toMatchObject({ param: "headers", code: "invalid_header" });
  });
});
