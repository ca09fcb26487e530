import { describe, expect, test } from "bun:test";
import { der, readDer, readDerParts, TAG } from "../../../../src/core/crypto/der.ts";

describe("a value in DER", () => {
  test.each([0, 1, 127, 128, 255, 256, 65_535, 65_536])(
    "is read as it was written, with %d octets",
    (length) => {
      const content = Buffer.alloc(length, 7);
      const octets = Buffer.concat([Buffer.from([0xff]), der(TAG.octetString, content), Buffer.from([0xff])]);
      const read = readDer(octets, 1);
      expect(read.tag).toBe(TAG.octetString);
      expect(read.content.equals(content)).toBe(true);
      expect(read.end).toBe(octets.length - 1);
    },
  );

  test("gives its parts in order", () => {
    const parts = readDerParts(
      readDer(der(TAG.sequence, der(TAG.null), der(TAG.integer, Buffer.from([1])), der(TAG.null))),
    );
    expect(parts.map(({ tag }) => tag)).toEqual([TAG.null, TAG.integer, TAG.null]);
  });

  test.each([
    ["nothing", ""],
    ["a tag alone", "30"],
    ["fewer octets than its length", "300501"],
    ["a length of five octets", "308500000000010a"],
    ["a length without end", "3080"],
    ["a cut length", "3082ff"],
  ])("is refused if it is %s", (_what, hex) => {
    expect(() => readDer(Buffer.from(hex, "hex"))).toThrow(RangeError);
  });
});
