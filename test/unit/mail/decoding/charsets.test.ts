import { describe, expect, test } from "bun:test";
import PostalMime from "postal-mime";
import { decoderAsRead, decoderOf } from "../../../../src/mail/decoding/charsets.ts";
import { MAX_FLOWED_LINE_CHARS, unflowed } from "../../../../src/mail/decoding/flowed.ts";
import { partText } from "../../../../src/mail/reading/mail-text.ts";
import type { MimePart } from "../../../../src/mail/decoding/mime-part.ts";
import { WINDOW_OCTETS } from "../../../../src/mail/reading/part-octets.ts";
import { chanceOf } from "../../../support/chance.ts";

/** Names that mail programs write and only the MIME reader understands. */
const NAMES = [
  "cp932",
  "windows-932",
  "IBM932",
  "x-ms-cp932",
  "x-shiftjis",
  "eucjp",
  "x_euc-jp",
  "cp51932",
  "iso-2022-jp-2",
  "iso2022jp",
  "cp50220",
  "junet",
  "cp936",
  "ms936",
  "x-gb18030",
  "x-gb_2312-80",
  "cp949",
  "uhc",
  "x-euckr",
  "cp950",
  "x-big5-hkscs",
  "x-windows-874",
  "tis620",
  "cp874",
  "x-windows-1250",
  "windows1251",
  "x-iso-8859-2",
  "iso_8859_15",
  "x-iso-8859-8-i",
  "csiso-8859-5",
  "x-koi8-r",
  "x-koi8-u",
  "x-ibm866",
  "x-macintosh",
  "x-utf-8",
  "utf_8",
  "x-unicodefffe",
  "csutf-16le",
  "utf-7",
  "hz-gb-2312",
  "iso-2022-kr",
  "x-foo",
  "constructor",
  "cp1",
  "cp437",
  " X-GBK-2 ",
];

function read(charset: string, octets: Uint8Array): string {
  const { root } = new PostalMime() as unknown as { root: MimePart };
  root.contentType.parsed.params = { charset };
  root.content = octets.slice();
  return root.getTextContent();
}

function partOf(charset: string, format: string): MimePart {
  const { root } = new PostalMime() as unknown as { root: MimePart };
  root.contentType.parsed.params = { charset, format };
  return root;
}

describe("a charset name that only the MIME reader understands", () => {
  const chance = chanceOf(7);
  const octets = Uint8Array.from({ length: 20_000 }, () => chance.below(256));

  test.each(NAMES)("%s is decoded as the reader decodes it", (name) => {
    expect(decoderAsRead(name).decode(octets)).toBe(read(name, octets));
  });

  test("those names are passed to the MIME reader, because the runtime knows none of them", () => {
    const unknown = NAMES.filter((name) => decoderOf(name.trim().toLowerCase()) === null);
    expect(unknown.length).toBeGreaterThan(NAMES.length / 2);
  });
});

describe("a large text is decoded in pieces and never held as a whole", () => {
  const window = new Uint8Array(WINDOW_OCTETS).fill(0x61);

  test.each([
    ["in a charset of its own name", "shift_jis", ""],
    ["in a charset by another name", "cp932", ""],
    ["in an unknown charset", "x-foo", ""],
    ["flowed, of one endless line", "utf-8", "flowed"],
  ])("%s", (_, charset, format) => {
    let taken = 0;
    const content = function* (): Generator<Uint8Array> {
      for (; taken < 40; taken++) yield window;
    };
    const ahead: number[] = [];
    let said = 0;
    for (const piece of partText(partOf(charset, format), content())) {
      said += piece.length;
      ahead.push(taken * WINDOW_OCTETS - said);
    }
    expect(said).toBe(40 * WINDOW_OCTETS);
    expect(Math.max(...ahead)).toBeLessThanOrEqual(WINDOW_OCTETS);
  });
});

describe("a flowed line that is read in parts equals the line read at once", () => {
  const line = (chars: number): string => `> ${"a b ".repeat(chars / 4)}`.slice(0, chars);

  test.each([
    ["ends with a space", "", " \n> more\nend"],
    ["ends with a signature's line", "-- ", "\n> more\nend"],
    ["ends with a CR, and the next is quoted otherwise", " ", "\r\n>> more\nend"],
    ["is the last one", "x ", ""],
  ])("if it %s", (_, last, rest) => {
    for (const chars of [MAX_FLOWED_LINE_CHARS - 3, MAX_FLOWED_LINE_CHARS, 3 * MAX_FLOWED_LINE_CHARS]) {
      const text = `${line(chars)}${last}${rest}`;
      for (const deleteSpace of [false, true]) {
        // If a whole line with its end is in one piece, it is never read in parts.
        const once = [...unflowed([rest === "" ? `${text}\n` : text], deleteSpace)].join("");
        const pieces = text.match(/.{1,1000}/gs) ?? [];
        const parts = [...unflowed(pieces, deleteSpace)].join("");
        expect(parts === (rest === "" ? once.replace(/\n?$/, "") : once)).toBe(true);
      }
    }
  });
});
