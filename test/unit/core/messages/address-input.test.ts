import { describe, expect, test } from "bun:test";
import {
  type Address,
  addressIssues,
  addressListIssues,
  MAX_NAME_CHARS,
  mailboxesOf,
  readAddress,
} from "../../../../src/core/messages/address-input.ts";
import { checkSend } from "../../../../src/core/messages/send-rules.ts";
import { SendItem } from "../../../../src/core/messages/send-item.ts";
import { withSentence } from "../../../../src/core/errors.ts";
import { check, MAX_ISSUES } from "../../../../src/core/validation.ts";

const limits = { maxRecipients: 50, maxMessageBytes: 1e6, maxAttachments: 20, maxScheduleDays: 30 };
const rest = { subject: "Hi", text: "Hello" };

describe("an address in text form", () => {
  test.each<[string, { email: string; name?: string }]>([
    ["ana@example.com", { email: "ana@example.com" }],
    ["  ana@example.com ", { email: "ana@example.com" }],
    ["<ana@example.com>", { email: "ana@example.com" }],
    ["Ana <ana@example.com>", { email: "ana@example.com", name: "Ana" }],
    ["Ana<ana@example.com>", { email: "ana@example.com", name: "Ana" }],
    ["Lee, Ana < ana@example.com >", { email: "ana@example.com", name: "Lee, Ana" }],
    ['"Lee, Ana" <ana@example.com>', { email: "ana@example.com", name: "Lee, Ana" }],
    [
      '"Ana \\"Boss\\" \\\\ <Lee>" <ana@example.com>',
      { email: "ana@example.com", name: 'Ana "Boss" \\ <Lee>' },
    ],
    ['Ana "Boss" Lee <ana@example.com>', { email: "ana@example.com", name: 'Ana "Boss" Lee' }],
    ["ana@example.com <ana@example.com>", { email: "ana@example.com", name: "ana@example.com" }],
    ["Zoë <zoë@bücher.example>", { email: "zoë@bücher.example", name: "Zoë" }],
  ])("%p is read with its name", (text, mailbox) => {
    expect(readAddress(text)).toEqual(mailbox);
  });

  test.each([
    "",
    "ana",
    "Ana <>",
    "Ana <ana>",
    "<ana@example.com",
    "ana@example.com>",
    "Ana <ana@example.com> Lee",
    "ana@example.com, ben@example.com",
    "ana@example.com, Ben <ben@example.com>",
    "Ana <ana@example.com>, Ben <ben@example.com>",
    "Ana <ana@example.com>; <ben@example.com>",
    "ana@example.com\r\nBcc: ben@example.com",
    "Ana <ana@example.com\r\n>>",
  ])("%p is refused, because it is not one address", (text) => {
    expect(readAddress(text)).toBeNull();
  });

  test("an address in text form that holds several says that a list takes them", () => {
    expect(addressIssues("a@example.com, b@example.com", "to")).toMatchObject([
      { param: "to", code: "invalid_email", message: expect.stringContaining("Several are a list") },
    ]);
  });

  test("an address in text form cannot begin another header field with its name, and has a limit", () => {
    const named = (name: string) => addressIssues(`${name} <ana@example.com>`, "from");
    expect(named("A\r\nBcc: x")).toMatchObject([{ param: "from" }]);
    expect(named("x".repeat(MAX_NAME_CHARS))).toEqual([]);
    expect(named("x".repeat(MAX_NAME_CHARS + 1))).toMatchObject([{ param: "from" }]);
  });
});

describe("a send takes an address", () => {
  const email = "ana@example.com";
  test.each<[string, Address | Address[]]>([
    ["as a text", email],
    ["as an object", { email }],
    ["as a list of texts", [email]],
    ["as a list of objects", [{ email }]],
  ])("%s in every field", (_, to) => {
    const from = Array.isArray(to) ? (to[0] ?? email) : to;
    const result = checkSend({ ...rest, from, to, cc: to, bcc: to, replyTo: to }, limits, 0);
    const list = [{ email }];
    expect(result).toMatchObject({ item: { from: { email }, to: list, cc: list, bcc: list, replyTo: list } });
  });

  test("a list of addresses may mix the forms, and keeps its order", () => {
    expect(mailboxesOf(["a@example.com", { email: "b@example.com" }, "C <c@example.com>"])).toEqual([
      { email: "a@example.com" },
      { email: "b@example.com" },
      { email: "c@example.com", name: "C" },
    ]);
  });

  const ADDRESS = '"ana@example.com" or {"email":"ana@example.com"}';
  const LIST = 'an address or a list of addresses, such as "ana@example.com" or ["ana@example.com"]';
  test.each<[Record<string, unknown>, string, string | undefined]>([
    [{ from: 5 }, `"from" must be an address, such as ${ADDRESS}.`, undefined],
    [{ from: "ana" }, '"from" must be an address, such as "ana@example.com" or', "invalid_from"],
    [{ from: { email: "ana" } }, '"from.email" must be an email address, such as', "invalid_from"],
    [{ from: [email] }, `"from" must be an address, such as ${ADDRESS}.`, undefined],
    [{ to: 5 }, `"to" must be ${LIST}.`, undefined],
    [{ to: [] }, `"to" must be ${LIST}.`, "missing_field"],
    [{ to: undefined }, `"to" is required: ${LIST}.`, "missing_field"],
    [{ to: [email, 5] }, `"to[1]" must be an address, such as ${ADDRESS}.`, undefined],
    [{ to: "ana" }, '"to" must be an address, such as "ana@example.com" or', "invalid_email"],
    [{ to: ["ana"] }, '"to[0]" must be an address, such as "ana@example.com" or', "invalid_email"],
    [{ to: [{ name: "Ana" }] }, '"to[0].email" is required: an email address, such as', "missing_field"],
    [{ to: { name: "Ana" } }, '"to.email" is required: an email address, such as', "missing_field"],
    [{ to: { email: "ana" } }, '"to.email" must be an email address', "invalid_email"],
    [{ to: { email, name: 5 } }, '"to.name" must be a string of at most 320 characters', undefined],
  ])("the error for the address %j says how to fix it", (change, message, code) => {
    // Passes through JSON as requests do, so that a field set to undefined is absent.
    const item = JSON.parse(JSON.stringify({ ...rest, from: email, to: email, ...change }));
    const found = checkSend(item, limits, 0);
    const [issue] = Array.isArray(found) ? found : [];
    const sentence = issue === undefined ? "" : withSentence(issue).message;
    expect(sentence).toStartWith(message);
    expect(issue?.code).toBe(code as never);
  });
});

test("the issues of a list end at its limit", () => {
  expect(addressListIssues(["x", "x", "x"], "to", 2).map(({ param }) => param)).toEqual(["to[0]", "to[1]"]);
});

test("a list of many wrong entries gives no more issues than one answer has", () => {
  const to = Array(200_000).fill({ email: 1 });
  expect(check(SendItem, { ...rest, from: "a@example.com", to })).toHaveLength(MAX_ISSUES);
});
