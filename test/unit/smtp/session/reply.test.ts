import { expect, test } from "bun:test";
import {
  ehloReply,
  formatReply,
  MAX_REPLY_LINE_OCTETS,
  MAX_REPLY_LINES,
  REPLIES,
  reply,
} from "../../../../src/smtp/session/reply.ts";

test("a reply of one line and one of several", () => {
  expect(formatReply(reply(250, "2.1.0", "Fine"))).toBe("250 2.1.0 Fine\r\n");
  expect(formatReply(reply(550, "5.7.1", "One", "Two", "Three"))).toBe(
    "550-5.7.1 One\r\n550-5.7.1 Two\r\n550 5.7.1 Three\r\n",
  );
  expect(formatReply(reply(354, null, "Go"))).toBe("354 Go\r\n");
  expect(formatReply({ code: 250, lines: [] })).toBe("250 \r\n");
});

test("a foreign text cannot forge a second reply", () => {
  expect(formatReply(reply(550, "5.1.1", "no\r\n250 2.0.0 yes\0é"))).toBe(
    "550 5.1.1 no??250 2.0.0 yes??\r\n",
  );
});

test("a line is cut at 512 octets, a reply at its greatest number of lines", () => {
  const [line] = formatReply(reply(250, "2.0.0", "x".repeat(600))).split("\r\n");
  expect(line?.length).toBe(MAX_REPLY_LINE_OCTETS - 2);
  const many = Array.from({ length: MAX_REPLY_LINES + 1 }, (_, at) => `${at}`);
  const lines = formatReply(reply(250, "2.0.0", ...many))
    .trimEnd()
    .split("\r\n");
  expect(lines.length).toBe(MAX_REPLY_LINES);
  expect(lines.at(-1)).toStartWith("250 ");
});

test("an enhanced code matches the class of its reply, and is absent only if RFC 2034 says so", () => {
  for (const { code, enhanced } of Object.values<{ code: number; enhanced?: string }>(REPLIES))
    expect(enhanced?.[0]).toBe(code === 354 ? undefined : `${code}`[0]);
});

test("STARTTLS is offered in plain text only", () => {
  expect(ehloReply("mx.test", 1000, { tls: true, logins: [] }).lines).toEqual([
    "mx.test",
    "SIZE 1000",
    "PIPELINING",
    "8BITMIME",
    "SMTPUTF8",
    "ENHANCEDSTATUSCODES",
    "CHUNKING",
    "STARTTLS",
  ]);
  expect(ehloReply("mx.test", 1000, { tls: false, logins: [] }).lines).not.toContain("STARTTLS");
});

test("AUTH is offered with the mechanisms of the session", () => {
  expect(ehloReply("mx.test", 1000, { tls: false, logins: ["PLAIN", "LOGIN"] }).lines).toContain(
    "AUTH PLAIN LOGIN",
  );
});
