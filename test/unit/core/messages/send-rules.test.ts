import { describe, expect, test } from "bun:test";
import { addressKey } from "../../../../src/core/addresses.ts";
import { checkSend, MAX_DATA_BYTES, type SendLimits } from "../../../../src/core/messages/send-rules.ts";
import { addresseesOf } from "../../../../src/core/messages/send-item.ts";
import { MAX_ISSUES } from "../../../../src/core/validation.ts";

const NOW = Date.parse("2026-01-01T00:00:00Z");
const limits: SendLimits = {
  maxRecipients: 50,
  maxMessageBytes: 26_214_400,
  maxAttachments: 20,
  maxScheduleDays: 30,
};
const good = {
  from: { email: "a@example.com" },
  to: [{ email: "b@example.com" }],
  subject: "Hi",
  text: "Hello",
};
const many = (count: number) => Array.from({ length: count }, (_, at) => ({ email: `r${at}@example.com` }));

const manyKeys = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`key${at}`.padEnd(16), 0]));

function issues(change: Record<string, unknown>) {
  // Passes through JSON as requests do, so that a field set to undefined is absent.
  const result = checkSend(JSON.parse(JSON.stringify({ ...good, ...change })), limits, NOW);
  return Array.isArray(result) ? result : [];
}

test("no more recipients are validated than each list may have", () => {
  const bad = { email: "no address" };
  const lists = { to: [...many(50), bad], cc: [...many(50), bad], bcc: [...many(50), bad] };
  expect(issues(lists).map(({ param, code }) => [param, code])).toEqual([["to", "too_many_recipients"]]);
  expect(issues({ replyTo: [...many(49), bad] })).toMatchObject([{ param: "replyTo[49].email" }]);
});

test("at most 50 faults are reported, of the shape and of the rules", () => {
  const headers = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`X-${at}`, ""]));
  expect(issues({ headers: headers(49) })).toHaveLength(49);
  expect(issues({ headers: headers(50) })).toHaveLength(50);
  expect(issues({ headers: headers(50), subject: "a\nb" })).toHaveLength(50);
  expect(issues({ to: Array(51).fill({ email: 1 }) })).toHaveLength(50);
});

describe("a send is refused", () => {
  const file = { filename: "a.txt", content: "aGk=" };
  test.each<[string, Record<string, unknown>, string, string | undefined]>([
    ["without from", { from: undefined }, "from", "missing_field"],
    ["without an address in from", { from: {} }, "from.email", "missing_field"],
    ["with a malformed from", { from: { email: "a" } }, "from.email", "invalid_from"],
    ["without to", { to: undefined }, "to", "missing_field"],
    ["with an empty to", { to: [] }, "to", "missing_field"],
    [
      "with a malformed recipient",
      { to: [{ email: "b@example.com" }, { email: "c" }] },
      "to[1].email",
      "invalid_email",
    ],
    ["with a recipient without address", { to: [{ name: "B" }] }, "to[0].email", "missing_field"],
    [
      "with a line break in a name",
      { to: [{ email: "b@example.com", name: "B\r\nBcc: x@y.z" }] },
      "to[0].name",
      undefined,
    ],
    [
      "with 51 recipients",
      { to: many(49), cc: [{ email: "c@example.com" }], bcc: [{ email: "d@example.com" }] },
      "to",
      "too_many_recipients",
    ],
    ["without subject", { subject: undefined }, "subject", "missing_field"],
    ["with 999 characters of subject", { subject: "s".repeat(999) }, "subject", undefined],
    ["with a line break in the subject", { subject: "Hi\nBcc: x@y.z" }, "subject", undefined],
    ["without content", { text: undefined }, "html", "missing_field"],
    ["with too much text", { text: "x".repeat(2 * 1024 * 1024 + 1) }, "text", "message_too_large"],
    ["with too much html", { html: "ä".repeat(1024 * 1024 + 1) }, "html", "message_too_large"],
    ["with blank html and text", { html: "", text: " \r\n" }, "html", "missing_field"],
    ["with a NUL in the text", { text: "a\0b" }, "text", undefined],
    ["with too much data", { data: { a: { b: ["x".repeat(MAX_DATA_BYTES)] } } }, "data", "message_too_large"],
    ["with too many keys in data", { data: manyKeys(MAX_DATA_BYTES / 16) }, "data", "message_too_large"],
    [
      "with 51 headers",
      { headers: Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`X-${at}`, "v"])) },
      "headers",
      "invalid_header",
    ],
    [
      "with a header that the service writes itself",
      { headers: { "message-ID": "<x@y>" } },
      "headers.message-ID",
      "invalid_header",
    ],
    [
      "with a content header",
      { headers: { "Content-Type": "text/plain" } },
      "headers.Content-Type",
      "invalid_header",
    ],
    [
      "with a header that reveals hidden recipients",
      { headers: { "Resent-Bcc": "x@y.z" } },
      "headers.Resent-Bcc",
      "invalid_header",
    ],
    ["with an invalid header name", { headers: { "X Y": "v" } }, "headers.X Y", "invalid_header"],
    [
      "with References twice",
      { headers: { References: "<a@x>", references: "<b@x>" } },
      "headers.references",
      "invalid_header",
    ],
    ["with an empty header", { headers: { "X-A": "" } }, "headers.X-A", "invalid_header"],
    ["with a header of spaces", { headers: { "X-A": " \t" } }, "headers.X-A", "invalid_header"],
    ["with CR LF in a header", { headers: { "X-A": "v\r\nBcc: x@y.z" } }, "headers.X-A", "invalid_header"],
    [
      "with 4097 bytes in a header",
      { headers: { "X-A": "v".repeat(4097) } },
      "headers.X-A",
      "invalid_header",
    ],
    [
      "with 21 tags",
      { tags: Array.from({ length: 21 }, () => ({ name: "a", value: "b" })) },
      "tags",
      undefined,
    ],
    ["with a space in a tag", { tags: [{ name: "a b", value: "c" }] }, "tags[0].name", undefined],
    ["with an over-long tag", { tags: [{ name: "a", value: "c".repeat(257) }] }, "tags[0].value", undefined],
    [
      "with 77 characters in a header's name",
      { headers: { ["X".repeat(77)]: "v" } },
      `headers.${"X".repeat(76)}`,
      "invalid_header",
    ],
    ["with 51 addresses for replies", { replyTo: many(51) }, "replyTo", undefined],
    ["with 51 recipients in one list", { to: many(1), bcc: many(51) }, "to", "too_many_recipients"],
    ["with a NUL in the html", { html: "a\0b" }, "html", undefined],
    [
      "with an angle bracket in a content id",
      { attachments: [{ ...file, contentId: "a>" }] },
      "attachments[0].contentId",
      "invalid_attachment",
    ],
    [
      "with 21 attachments",
      { attachments: Array.from({ length: 21 }, () => file) },
      "attachments",
      "invalid_attachment",
    ],
    [
      "with content that is not base64",
      { attachments: [{ ...file, content: "a_b=" }] },
      "attachments[0].content",
      "invalid_attachment",
    ],
    [
      "with base64 cut short",
      { attachments: [{ ...file, content: "aGk" }] },
      "attachments[0].content",
      "invalid_attachment",
    ],
    [
      "with a line break in a file name",
      { attachments: [{ ...file, filename: "a\r\n.txt" }] },
      "attachments[0].filename",
      "invalid_attachment",
    ],
    [
      "with an invalid content type",
      { attachments: [{ ...file, contentType: "text/plain\r\nX: y" }] },
      "attachments[0].contentType",
      "invalid_attachment",
    ],
    [
      "scheduled too far ahead",
      { scheduledAt: "2026-01-31T00:00:01Z" },
      "scheduledAt",
      "schedule_out_of_range",
    ],
    ["scheduled at no time", { scheduledAt: "tomorrow" }, "scheduledAt", undefined],
    [
      "scheduled on a day that does not exist",
      { scheduledAt: "2026-02-30T00:00:00Z" },
      "scheduledAt",
      undefined,
    ],
    ["scheduled without a zone", { scheduledAt: "2026-01-02T00:00:00" }, "scheduledAt", undefined],
  ])("%s", (_, change, param, code) => {
    const [issue] = issues(change);
    expect({ param: issue?.param, code: issue?.code }).toEqual({ param, code: code as never });
  });

  test("over the message limit once encoded", () => {
    const attachments = [{ filename: "a.bin", content: "A".repeat(26 * 1024 * 1024) }];
    expect(issues({ attachments })[0]?.code).toBe("message_too_large");
  });

  test("one octet over the message limit, and is taken at the limit", () => {
    // 76 characters of base64 take 78 octets with their line end.
    const item = {
      ...good,
      html: "é",
      text: "abc",
      attachments: [{ filename: "a", content: "A".repeat(76) }],
    };
    const of = (maxMessageBytes: number) => checkSend(item, { ...limits, maxMessageBytes }, NOW);
    expect(of(83)).toMatchObject({ scheduledAt: null });
    expect(of(82)).toMatchObject([{ param: "", code: "message_too_large" }]);
  });

  test("with every fault reported at once", () => {
    const found = issues({ from: { email: "a" }, subject: "x\ny", tags: [{ name: "", value: "b" }] });
    expect(found.map((issue) => issue.param)).toEqual(["from.email", "subject", "tags[0].name"]);
  });

  test.each<[string, unknown, string[]]>([
    ["it is empty", {}, ["from", "to", "subject", "html"]],
    [
      "some are of its shape",
      { from: {}, to: [{ email: "b" }], subject: 5, text: "x", tags: [{ name: "", value: "b" }] },
      ["from.email", "subject", "to[0].email", "tags[0].name"],
    ],
    ["its content has no shape", { ...good, text: 5 }, ["text"]],
    [
      "other items of the list have another shape",
      {
        ...good,
        from: { email: "a", name: 5 },
        to: [{ name: "B" }, { email: "b" }, "c", { email: "d", name: 5 }],
        headers: { "X-A": 5, "X.B": "a\nb", "X].C": 5, "5": 5, To: "x" },
        tags: [{ name: "" }, { name: 5, value: "c d" }],
        attachments: [
          { filename: "a\n", content: 5 },
          { filename: "", content: "?" },
        ],
      },
      [
        "from.name",
        "to[0].email",
        "to[3].name",
        "headers[5]",
        "headers.X-A",
        "headers.X].C",
        "tags[0].value",
        "tags[1].name",
        "attachments[0].content",
        "attachments[1].filename",
        "from.email",
        "to[1].email",
        "to[2]",
        "to[3].email",
        "headers.X.B",
        "headers.To",
        "tags[0].name",
        "tags[1].value",
        "attachments[0].filename",
        "attachments[1].content",
      ],
    ],
  ])("with every fault reported at once if %s", (_, value, params) => {
    const found = checkSend(value, limits, NOW);
    expect((Array.isArray(found) ? found : []).map(({ param }) => param)).toEqual(params);
  });

  test.each([{ html: 5 }, { cc: 5 }, { tags: 5 }, { attachments: [{ filename: 1 }] }])(
    "if there are more faults than the limit reports, and %j comes after them",
    (change) => {
      expect(issues({ to: Array(MAX_ISSUES + 1).fill({ email: 1 }), ...change })).toHaveLength(MAX_ISSUES);
    },
  );

  test.each([[null], [1], ["x"], [[]], [true]])("if it is %j", (value) => {
    expect(Array.isArray(checkSend(value, limits, NOW))).toBe(true);
  });
});

describe("a send passes", () => {
  test.each<[string, Record<string, unknown>]>([
    ["unchanged", {}],
    ["with 50 recipients", { to: many(50) }],
    ["with 998 characters of subject", { subject: "s".repeat(998) }],
    ["with 2 MiB of text", { text: "x".repeat(2 * 1024 * 1024) }],
    ["with unknown fields", { future: { x: 1 } }],
    [
      "with 50 headers of 4096 bytes",
      { headers: Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`X-${at}`, "v".repeat(4096)])) },
    ],
    ["with 50 addresses for replies", { replyTo: many(50) }],
    ["with 76 characters in a header's name", { headers: { ["X".repeat(76)]: "v" } }],
    ["with a repeatable header in two cases", { headers: { Comments: "a", comments: "b" } }],
    ["with 20 tags", { tags: Array.from({ length: 20 }, () => ({ name: "a", value: "b" })) }],
    ["with 256 characters in a tag", { tags: [{ name: "n".repeat(256), value: "v".repeat(256) }] }],
    [
      "with 20 attachments",
      { attachments: Array.from({ length: 20 }, () => ({ filename: "a.txt", content: "aGk=" })) },
    ],
    ["with an attachment and blank content", { text: " ", attachments: [{ filename: "a", content: "" }] }],
    ["with an empty attachment", { attachments: [{ filename: "a", content: "" }] }],
    [
      "with a template instead of content",
      { subject: undefined, text: undefined, templateId: "welcome", data: { a: 1 } },
    ],
  ])("%s", (_, change) => {
    expect(issues(change)).toEqual([]);
  });

  test.each([
    ["2026-01-02T00:00:00Z", Date.parse("2026-01-02T00:00:00Z")],
    ["2026-01-31T01:00:00+01:00", Date.parse("2026-01-31T00:00:00Z")],
    ["2026-01-31T00:00:00Z", Date.parse("2026-01-31T00:00:00Z")],
    ["2026-01-01T00:00:00.001Z", NOW + 1],
    ["2026-01-01T00:00:00Z", null],
    ["2025-12-31T23:59:59Z", null],
    [undefined, null],
  ])("scheduled at %s is due at %p", (scheduledAt, expected) => {
    const result = checkSend({ ...good, scheduledAt }, limits, NOW);
    expect(Array.isArray(result) ? result : result.scheduledAt).toBe(expected);
  });
});

test("an address named twice is one recipient, of the kind where it first occurs", () => {
  const item = {
    ...good,
    to: [{ email: "B@Example.com" }],
    cc: [{ email: "b@example.com" }, { email: "c@example.com" }],
  };
  expect(addresseesOf(item)).toEqual([
    { email: "B@example.com", key: "b@example.com", domain: "example.com", kind: "to" },
    { email: "c@example.com", key: "c@example.com", domain: "example.com", kind: "cc" },
  ]);
});

test("an address with an accent is one recipient in both Unicode spellings, under one key", () => {
  const [composed, apart] = ["ren\u00e9@example.com", "rene\u0301@example.com"];
  const item = { ...good, to: [{ email: apart }], cc: [{ email: composed }] };
  expect(addresseesOf(item)).toEqual([
    { email: apart, key: addressKey(composed), domain: "example.com", kind: "to" },
  ]);
});
