import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { receivingInboxes, SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";
import { Client } from "./server-harness.ts";

const LIMIT_MS = 90_000;
let service: TestService;

beforeAll(async () => {
  service = await startService();
  await receivingInboxes(service, "in.test", ["one@in.test"]);
  await receivingInboxes(service, "bücher.test", ["leser@bücher.test"]);
}, LIMIT_MS);
afterAll(() => service.stop());

/** Octets of UTF-8, as the client sends them. */
function wire(text: string): string {
  return Buffer.from(text).toString("latin1");
}

/** The reply to RCPT for a client that is unknown, or that claims to be one of ours. */
async function answer(path: string, from = "stranger@client.test"): Promise<string> {
  const client = await Client.connect(service.smtpPort);
  await client.say("EHLO client.test");
  expect(await client.say(`MAIL FROM:<${from}> SMTPUTF8`)).toStartWith("250 ");
  const said = await client.say(wire(`RCPT TO:${path}`));
  client.destroy();
  return said.slice(0, 9);
}

const NO_MAILBOX = "550 5.1.1";
const NO_DOMAIN = "550 5.1.2";
const MALFORMED = "501 5.1.3";
const SYNTAX = "501 5.5.4";

describe("no unauthenticated mail is relayed, however the address is written", () => {
  const rows: [path: string, code: string][] = [
    ["<victim@elsewhere.example>", NO_DOMAIN],
    ["<VICTIM@ELSEWHERE.EXAMPLE>", NO_DOMAIN],
    ["<victim@elsewhere.example.>", MALFORMED],
    ["<victim%elsewhere.example@in.test>", NO_MAILBOX],
    ["<one%in.test@elsewhere.example>", NO_DOMAIN],
    ["<victim%elsewhere.example@[127.0.0.1]>", NO_MAILBOX],
    ["<elsewhere.example!victim@in.test>", NO_MAILBOX],
    ["<in.test!one@elsewhere.example>", NO_DOMAIN],
    ["<elsewhere.example!victim>", MALFORMED],
    ["<@in.test:victim@elsewhere.example>", NO_DOMAIN],
    ["<@elsewhere.example,@in.test:victim@elsewhere.example>", NO_DOMAIN],
    ["<@elsewhere.example:victim%elsewhere.example@in.test>", NO_MAILBOX],
    ['<"victim@elsewhere.example"@in.test>', NO_MAILBOX],
    ['<"one@in.test"@elsewhere.example>', NO_MAILBOX],
    ['<"victim@elsewhere.example">', MALFORMED],
    ['<"one\\"@in.test">', MALFORMED],
    ['<""@in.test>', NO_MAILBOX],
    ["<victim@elsewhere.example@in.test>", MALFORMED],
    ["<one@in.test@elsewhere.example>", MALFORMED],
    ["<one@in.test,victim@elsewhere.example>", MALFORMED],
    ["<one@in.test>,<victim@elsewhere.example>", SYNTAX],
    ["<one@in.test> <victim@elsewhere.example>", SYNTAX],
    ["one@in.test", SYNTAX],
    ["<one>", MALFORMED],
    ["<@in.test>", MALFORMED],
    ["<one@[127.0.0.1]>", NO_MAILBOX],
    ["<victim@[192.0.2.1]>", NO_MAILBOX],
    ["<victim@[IPv6:2001:db8::1]>", NO_MAILBOX],
    ["<one@127.0.0.1>", MALFORMED],
    ["<one@2130706433>", MALFORMED],
    ["<one@sub.in.test>", NO_DOMAIN],
    ["<one@notin.test>", NO_DOMAIN],
    ["<one@in.test.elsewhere.example>", NO_DOMAIN],
    ["<one@in.test.>", MALFORMED],
    ["<one@in..test>", MALFORMED],
    ["<victim@elsewhere。example>", NO_DOMAIN],
    ["<victim@ｅlsewhere.example>", NO_DOMAIN],
    ["<ｏne@in.test>", NO_MAILBOX],
    [`<victim@${SERVICE_DOMAIN}>`, NO_MAILBOX],
    [`<b+forged@bounce.${SERVICE_DOMAIN}>`, NO_MAILBOX],
  ];
  test.each(rows)("%s", async (path, code) => {
    expect(await answer(path)).toStartWith(code);
    expect(await answer(path, "one@in.test")).toStartWith(code);
    expect(await answer(path, "")).toStartWith(code);
  });
});

describe("an inbox is reached however its address is written", () => {
  const rows = [
    "<one@in.test>",
    "<ONE@In.Test>",
    '<"one"@in.test>',
    '<"o\\ne"@in.test>',
    "<one+anything@in.test>",
    "<@relay.example:one@in.test>",
    "<@relay.example,@other.example:one@in.test>",
    "<one@ｉn。test>",
    "<leser@bücher.test>",
    "<leser@BÜCHER.test>",
    "<leser@xn--bcher-kva.test>",
    "<leser@XN--BCHER-KVA.TEST>",
  ];
  test.each(rows)("%s", async (path) => {
    expect(await answer(path)).toStartWith("250 2.1.5");
  });
});

test("AUTH is never offered and never accepted", async () => {
  const client = await Client.connect(service.smtpPort);
  expect(await client.say("EHLO client.test")).not.toContain("AUTH");
  expect(await client.say("AUTH PLAIN AG9uZQBvbmU=")).toStartWith("502 ");
  client.destroy();
});

/** Ends of a message as other servers read them. Ours only ends at CRLF.CRLF (SMTP smuggling). */
const ENDS = [
  "\n.\n",
  "\n.\r\n",
  "\r\n.\n",
  "\r.\r",
  "\r.\r\n",
  "\r\n.\r",
  "\r\n\0.\r\n",
  "\r\n.\0\r\n",
  "\r\r\n.\r\r\n",
  "\n\r.\n\r",
];

describe("no false end of data smuggles a message in", () => {
  const evil =
    "MAIL FROM:<evil@client.test>\r\nRCPT TO:<one@in.test>\r\nDATA\r\nSubject: evil\r\n\r\nsmuggled\r\n";
  test.each(ENDS.map((end) => JSON.stringify(end)))("%s", async (shown) => {
    const client = await Client.connect(service.smtpPort);
    client.send("EHLO client.test\r\nMAIL FROM:<a@client.test>\r\nRCPT TO:<one@in.test>\r\nDATA\r\n");
    expect(await client.codes(4)).toEqual(["250", "250", "250", "354"]);
    client.send(`Subject: good\r\n\r\nhello${JSON.parse(shown)}${evil}.\r\nNOOP\r\n`);
    expect(await client.codes(2)).toEqual(["550", "421"]);
    client.destroy();
    const { body } = await service.call("GET", "/v1/emails?direction=inbound");
    expect(body.data).toEqual([]);
  });
});
