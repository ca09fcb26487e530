import { expect, test } from "bun:test";
import { type AddedFields, outgoingMail } from "../../../../src/mail/submitted/outgoing.ts";

const ADDED: AddedFields = {
  messageId: "<msg_1@from.test>",
  date: Date.UTC(2026, 0, 31, 9, 30),
  own: [],
  signers: ["pr1", "pr2"].map((selector) => ({ domain: "b.example", selector })),
};

function outgoing(text: string, added: Partial<AddedFields> = {}, smtpUtf8 = false) {
  return outgoingMail({ bytes: Buffer.from(text), smtpUtf8 }, { ...ADDED, ...added }, null);
}

test("Date and Message-ID are added if they are missing, and kept if they are there", () => {
  expect(outgoing("From: a@b.example\r\n\r\nHi\r\n").raw.toString()).toBe(
    "From: a@b.example\r\nDate: Sat, 31 Jan 2026 09:30:00 +0000\r\nMessage-ID: <msg_1@from.test>\r\n\r\nHi\r\n",
  );
  const whole = "message-id: <x@y>\r\nFrom: a@b.example\r\ndate: yesterday\r\n\r\n.Hi";
  expect(outgoing(whole).raw.toString()).toBe(whole);
});

test("our fields replace those of the same name", () => {
  const text =
    "Date: x\r\nMessage-ID: <x@y>\r\nLIST-UNSUBSCRIBE: <mailto:a@b.example>\r\nFrom: a@b.example\r\n\r\n";
  expect(outgoing(text, { own: [["List-Unsubscribe", "<https://x.example/u/1>"]] }).raw.toString()).toBe(
    "Date: x\r\nMessage-ID: <x@y>\r\nFrom: a@b.example\r\nList-Unsubscribe: <https://x.example/u/1>\r\n\r\n",
  );
});

test("a message needs SMTPUTF8 if its client said so and its header has octets beyond ASCII", () => {
  expect(outgoing("From: ü@b.example\r\n\r\n", {}, true).smtpUtf8).toBe(true);
  expect(outgoing("From: ü@b.example\r\n\r\n").smtpUtf8).toBe(false);
  expect(outgoing("From: u@b.example\r\n\r\nü", {}, true).smtpUtf8).toBe(false);
});

test("a DKIM signature under one of our keys is removed, and any other is kept", () => {
  const rest = "Date: x\r\nMessage-ID: <x@y>\r\nFrom: a@b.example\r\n\r\n";
  const ours = ["v=1; d=b.example; s=pr1; b=eA==", "s=PR2;\r\n d = B.example"];
  const others = ["d=b.example; s=own", "d=other.example; s=pr1"].map(
    (value) => `DKIM-Signature: ${value}\r\n`,
  );
  for (const value of ours) expect(outgoing(`DKIM-Signature: ${value}\r\n${rest}`).raw.toString()).toBe(rest);
  for (const field of others) expect(outgoing(`${field}${rest}`).raw.toString()).toBe(`${field}${rest}`);
});
