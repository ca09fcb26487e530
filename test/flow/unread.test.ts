import { afterAll, beforeAll, expect, test } from "bun:test";
import { MAX_HEADER_OCTETS } from "../../src/mail/reading/raw-headers.ts";
import { MAX_LINES } from "../../src/mail/reading/parse.ts";
import { MAX_NESTING_DEPTH, MAX_PARTS } from "../../src/mail/reading/mime-tree.ts";
import { deliveredRecord, type Letter } from "../support/mail-in.ts";
import { receivingInboxes, startService, type TestService } from "../support/service.ts";

const BOX = "box@in.test";
let service: TestService;

beforeAll(async () => {
  service = await startService();
  await receivingInboxes(service, "in.test", [BOX]);
});
afterAll(() => service.stop());

const MIXED = 'Content-Type: multipart/mixed; boundary="b"';
const nested = Array.from(
  { length: MAX_NESTING_DEPTH },
  (_, at) => `--b${at || ""}\r\nContent-Type: multipart/mixed; boundary="b${at + 1}"\r\n\r\n`,
);

const LETTERS: [reason: string | null, what: string, letter: Omit<Letter, "to">][] = [
  [null, "with one part", { body: "last words" }],
  [
    "too_many_parts",
    "with more parts than are read",
    { headers: [MIXED], body: `${"--b\r\n\r\nx\r\n".repeat(MAX_PARTS + 1)}last words` },
  ],
  [
    "nested_too_deep",
    "nested deeper than is read",
    { headers: [MIXED], body: `${nested.join("")}--b${MAX_NESTING_DEPTH}\r\n\r\nlast words` },
  ],
  [
    "part_headers_too_long",
    "whose parts have longer headers than are read",
    {
      headers: [MIXED],
      body: `--b\r\n\r\nx\r\n--b\r\n${`X: ${"x".repeat(510)}\r\n`.repeat(MAX_HEADER_OCTETS / 512)}\r\nlast words`,
    },
  ],
  ["too_many_lines", "of more lines than are read", { body: `${"x\r\n".repeat(MAX_LINES)}last words` }],
  [
    "header_too_long",
    "with a longer header than is read",
    {
      headers: [
        "From: ada@client.test",
        ...Array<string>(MAX_HEADER_OCTETS / 512).fill(`X: ${"x".repeat(510)}`),
      ],
      body: "last words",
    },
  ],
];
test.each(LETTERS)(
  "the record says %s of a message %s, and its source is whole",
  async (reason, _, letter) => {
    const record = await deliveredRecord(service, { to: BOX, ...letter });
    expect(record).toMatchObject({ unread: reason, from: "ada@client.test" });
    const { body } = await service.call("GET", `/v1/emails/${record.id}/raw`);
    expect(body.trimEnd()).toEndWith("last words");
  },
);
