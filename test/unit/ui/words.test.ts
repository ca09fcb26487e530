import { describe, expect, test } from "bun:test";
import type { Message, Recipient } from "../../../src/ui/api/types.ts";
import { parseMailboxes } from "../../../src/ui/words/addresses.ts";
import { percentText, sizeText } from "../../../src/ui/words/amounts.ts";
import { localExplanation, messageAnswer } from "../../../src/ui/words/answer.ts";
import { curlText, sendAsCurl, sendAsTypeScript } from "../../../src/ui/words/code.ts";
import { quote } from "../../../src/ui/words/quoting.ts";
import { eventWords, statusWords } from "../../../src/ui/words/status.ts";
import { duration, shortAge } from "../../../src/ui/words/time.ts";

const NOW = Date.parse("2026-03-05T12:00:00Z");

describe("a list of addresses", () => {
  test.each([
    ["ana@example.com", [{ email: "ana@example.com" }]],
    [
      "Ana <ana@example.com>, b@example.com;",
      [{ email: "ana@example.com", name: "Ana" }, { email: "b@example.com" }],
    ],
    ['"Lind, Eve" <eve@example.com>', [{ email: "eve@example.com", name: "Lind, Eve" }]],
    ['"a \\" b" <q@example.com>', [{ email: "q@example.com", name: 'a " b' }]],
    ["  ", []],
  ])("%p is read as %p", (text, mailboxes) => {
    expect(parseMailboxes(text)).toEqual(mailboxes);
  });
});

test.each([
  [0, "now"],
  [59_000, "59s"],
  [60_000, "1m"],
  [3_600_000 * 23, "23h"],
  [86_400_000 * 6, "6d"],
  [-90_000, "in 2m"],
])("an age of %p ms is shown as %p", (age, text) => {
  expect(shortAge(NOW - age, NOW)).toBe(text);
});

test.each([
  [420, "420 ms"],
  [1_240, "1.2 s"],
  [90_000, "90 s"],
  [3_600_000 * 2 + 300_000, "2 h 5 min"],
])("a span of %p ms is shown as %p", (ms, text) => {
  expect(duration(ms)).toBe(text);
});

test.each([
  [1, "1 byte"],
  [1023, "1023 bytes"],
  [1024, "1.0 KiB"],
  [25 * 1024 * 1024, "25 MiB"],
])("%p bytes are shown as %p", (bytes, text) => {
  expect(sizeText(bytes)).toBe(text);
});

test.each([
  [0, "0 %"],
  [0.0031, "0.31 %"],
  [0.5, "50 %"],
])("the share %p is shown as %p", (share, text) => {
  expect(percentText(share)).toBe(text);
});

test("a status that is newer than the page is shown as it is", () => {
  expect(statusWords("teleported").word).toBe("teleported");
});

test("a received message is not called delivered", () => {
  expect(statusWords("delivered", "inbound").word).toBe("Received");
});

test("what capture mode delivered is called captured", () => {
  expect(statusWords("delivered", "outbound", true).word).toBe("Captured");
  expect(statusWords("bounced", "outbound", true).word).toBe("Bounced");
  expect([eventWords("delivery", true).word, eventWords("delivery").word]).toEqual(["Captured", "Delivered"]);
});

describe("a send as code", () => {
  const item = { from: { email: "a@example.com" }, to: [{ email: "b@example.com" }], subject: "It's here" };

  test("quotes an apostrophe for the shell", () => {
    expect(sendAsCurl(item, { origin: "http://localhost:3000", project: null })).toContain("It'\\''s here");
  });

  test("a send as code names the project only if the key does not imply it", () => {
    const origin = "http://localhost:3000";
    expect(sendAsTypeScript(item, { origin, project: "shop" })).toContain('project: "shop"');
    expect(sendAsTypeScript(item, { origin, project: null })).not.toContain("project");
  });

  test("a send as code shows only the beginning of an attachment", () => {
    const attachments = [{ filename: "a.txt", content: "A".repeat(1000) }];
    const text = sendAsTypeScript(
      { ...item, attachments },
      { origin: "http://localhost:3000", project: null },
    );
    expect(text).toContain(`content: "${"A".repeat(24)}…"`);
  });

  test("a send as code has no body for a read", () => {
    const text = curlText("GET", "/v1/emails", undefined, { origin: "http://localhost:3000", project: null });
    expect(text).not.toMatch(/-d|-X/);
  });
});

test("a reply quotes each line, and an older quotation one level deeper", () => {
  expect(quote({ from: "Ana", at: "5 Mar", text: "Hi\r\n\r\n> old\n" })).toBe(
    "On 5 Mar, Ana wrote:\n> Hi\n>\n>> old",
  );
});

describe("the answer about a message", () => {
  const recipient: Recipient = {
    email: "ana@example.com",
    kind: "to",
    status: "delivered",
    reason: null,
    attempts: 1,
    mx: "mx.example.com",
    tls: "TLSv1.3",
    smtpCode: 250,
    enhancedCode: null,
    diagnostic: null,
    lastEventAt: "2026-03-05T12:00:01.200Z",
  };
  const message = (...recipients: Recipient[]) =>
    ({
      direction: "outbound",
      createdAt: "2026-03-05T12:00:00.000Z",
      scheduledAt: null,
      status: recipients[0]?.status,
      recipients,
      events: [],
    }) as unknown as Message;

  test.each([
    [{ inbound_rejected: { reason: "sender_blocked" } }, "Its sender is on a block list."],
    [{ inbound_rejected: { reason: "rule" } }, "A rule refused it."],
    [{ inbound_rejected: { reason: "dmarc" } }, "The sender's domain asks to refuse mail"],
  ])("a received message that was refused with %j says why", (data, words) => {
    const refused = {
      ...message(),
      direction: "inbound",
      status: "inbound_rejected",
      events: [{ type: "inbound_rejected", data }],
    } as unknown as Parameters<typeof messageAnswer>[0];
    expect(messageAnswer(refused)).toStartWith(words);
  });

  test("the answer about a message names the server, the time and the encryption", () => {
    expect(messageAnswer(message(recipient))).toBe("Delivered to mx.example.com in 1.2 s over TLS 1.3.");
  });

  test("the answer about a message says that nothing left the machine in capture mode", () => {
    expect(messageAnswer(message({ ...recipient, mx: "capture" }))).toStartWith("Kept on this machine");
  });

  test("the answer about a message counts several recipients by their status", () => {
    expect(messageAnswer(message(recipient, { ...recipient, status: "bounced" }))).toBe(
      "2 recipients: 1 delivered, 1 bounced.",
    );
    const captured = { ...recipient, mx: "capture" };
    expect(messageAnswer(message(captured, captured))).toBe("2 recipients: 2 captured.");
  });

  test("explains a bounce and says what to do", () => {
    const found = localExplanation(message({ ...recipient, status: "bounced", reason: "mailbox-full" }));
    expect(found?.recipients[0]).toMatchObject({
      what: "The recipient's mailbox is full. The bounce suppressed the address.",
    });
    expect(found?.recipients[0]?.next).not.toBe("");
  });

  test("explains nothing if every recipient got the message", () => {
    expect(localExplanation(message(recipient))).toBeNull();
  });
});
