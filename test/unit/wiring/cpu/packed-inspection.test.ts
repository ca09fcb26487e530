import { expect, test } from "bun:test";
import { systemClock } from "../../../../src/clock.ts";
import { type Inspection, inspectMail } from "../../../../src/flows/mime/inspect.ts";
import { packedInspection, unpackedInspection } from "../../../../src/wiring/cpu/packed-inspection.ts";

const deps = {
  clock: systemClock,
  host: "mx.test",
  resolve: () => Promise.reject(Object.assign(new Error("no such name"), { code: "ENOTFOUND" })),
};
const session = { ip: "192.0.2.1", helo: "client.test", mailFrom: "ada@client.test" };

const read = (raw: string, from = session): Promise<Inspection> =>
  inspectMail(deps, { raw: Buffer.from(raw), session: from });

/** Octets are compared by value: one side may have them in a `Buffer`. */
const plain = ({ contents: { body, raw, ...more }, ...rest }: Inspection): unknown => ({
  ...rest,
  ...more,
  body: { ...body, key: [...body.key], bytes: [...(body.bytes ?? [])] },
  raw: { ...raw, key: [...raw.key], bytes: [...(raw.bytes ?? [])] },
});

test.each([
  ["short", "From: ada@client.test\r\nSubject: Hi\r\n\r\nHi\r\n"],
  ["long enough to be compressed", `From: ada@client.test\r\n\r\n${"A line of text.\r\n".repeat(200)}`],
  [
    "in every octet",
    `From: ada@client.test\r\n\r\n${String.fromCodePoint(...Array(256).keys())} \ud83d\ude00\r\n`,
  ],
  [
    "with an attachment and names beyond ASCII",
    [
      'From: "\u00c4da" <ada@client.test>\r\nReferences: <a@b> <c@d>\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n',
      "--x\r\n\r\nText\r\n--x\r\nContent-Disposition: attachment; filename=y\r\n\r\nz\r\n--x--\r\n",
    ].join(""),
  ],
])("a result for a message that is %s is the same after it was packed", async (_, raw) => {
  const found = await read(raw);
  const packed = packedInspection(found);
  if (packed === null) throw new Error("it is not packed");
  expect(Object.values(packed).every((value) => typeof value === "string")).toBe(true);
  expect(plain(unpackedInspection(packed))).toEqual(plain(found));
});

test("a result with a large body, and one of another task, are not packed", async () => {
  const large = await read(`From: ada@client.test\r\n\r\n${"A line of text.\r\n".repeat(40_000)}`);
  expect(packedInspection(large)).toBeNull();
  expect(packedInspection({ bytes: null })).toBeNull();
});
