import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { dkimBody } from "mailauth/lib/dkim/body";
import { canonicalPieces, PIECE_OCTETS } from "../../../../src/mail/auth/canonical-body.ts";
import { seeded } from "../../../support/peers/varied-mail.ts";

const KINDS = ["relaxed", "simple"] as const;
const SEED = 20_261_124;
const BODIES = 3000;
/** Parts of bodies; a CR without LF is text (RFC 6376 §3.4.4). */
const PARTS = [" ", "\t", "\r\n", "\r", "a", "bc", "é", " \r\n", "\r\n\r\n"];

function hashed(kind: (typeof KINDS)[number], body: Buffer): string {
  const hash = createHash("sha256");
  for (const piece of canonicalPieces(kind, body)) hash.update(piece);
  return hash.digest("base64");
}

/** mailauth's hash of the body, given as one chunk. */
function peerHashed(kind: (typeof KINDS)[number], body: Buffer): string {
  const hash = dkimBody(kind, "sha256", "");
  hash.update(body);
  return hash.digest("base64");
}

describe.each(KINDS)("a body by %s canonicalization", (kind) => {
  test("is hashed as mailauth hashes it", () => {
    const random = seeded(SEED);
    for (let at = 0; at < BODIES; at++) {
      const parts = Array.from({ length: random() * 12 }, () => PARTS[Math.floor(random() * PARTS.length)]);
      const body = Buffer.from(parts.join(""));
      expect([body.toString(), hashed(kind, body)]).toEqual([body.toString(), peerHashed(kind, body)]);
    }
  });

  test.each([
    ["a line end", "\r\n"],
    ["white space", " \t "],
    ["text", "x"],
    ["a CR alone", "\r"],
    ["empty lines", "\r\n\r\n\r\n"],
  ])("is hashed in pieces that may end in %s", (_, inside) => {
    for (let shift = -3; shift <= 3; shift++) {
      const before = "y".repeat(PIECE_OCTETS + shift);
      for (const after of ["", "z", " \r\n"]) {
        const body = Buffer.from(`${before}${inside}${after}`);
        expect(hashed(kind, body)).toBe(peerHashed(kind, body));
        const doubled = Buffer.from(`a  b${before}${inside}${after}`);
        expect(hashed(kind, doubled)).toBe(peerHashed(kind, doubled));
      }
    }
  });

  test("has CRLF for each LF that stands alone", () => {
    const [bare, whole] = ["a\n\n b \r\n\nc \td\n\n", "a\r\n\r\n b \r\n\r\nc \td\r\n\r\n"].map((text) =>
      Buffer.from(text),
    ) as [Buffer, Buffer];
    expect(hashed(kind, bare)).toBe(hashed(kind, whole));
  });
});

function relaxedBody(body: string): string {
  return Buffer.concat([...canonicalPieces("relaxed", Buffer.from(body))]).toString();
}

test.each([
  ["", ""],
  ["\r\n\r\n", ""],
  [" C \r\nD \t E\r\n\r\n\r\n", " C\r\nD E\r\n"],
  ["a b\r\nc\r\n\r\n", "a b\r\nc\r\n"],
  ["a  b\r\n", "a b\r\n"],
  ["a\tb\r\n", "a b\r\n"],
  ["a \r\nb\r\n", "a\r\nb\r\n"],
  ["a\r\n \r\n", "a\r\n"],
  ["\u00a0\r\n\u00a0 ", "\u00a0\r\n\u00a0\r\n"],
  ["a", "a\r\n"],
  ["a ", "a\r\n"],
  [" \r\n", ""],
  ["a\r\n \t", "a\r\n"],
])("a body %j is relaxed to %j (RFC 6376 §3.4.4)", (body, expected) => {
  expect(relaxedBody(body)).toBe(expected);
});

test("a run of spaces is one space", () => {
  expect(relaxedBody(`${" ".repeat(5_000_000)}x`)).toBe(" x\r\n");
});
