import { describe, expect, test } from "bun:test";
import { der, derTime, readDer, readDerParts, TAG } from "../../../../src/core/crypto/der.ts";

describe("a value in DER", () => {
  test.each([0, 1, 127, 128, 255, 256, 65_535, 65_536])(
    "a value in DER is read as it was written, with %d octets",
    (length) => {
      const content = Buffer.alloc(length, 7);
      const octets = Buffer.concat([Buffer.from([0xff]), der(TAG.octetString, content), Buffer.from([0xff])]);
      const read = readDer(octets, 1);
      expect(read.tag).toBe(TAG.octetString);
      expect(read.content.equals(content)).toBe(true);
      expect(read.end).toBe(octets.length - 1);
    },
  );

  test("a value in DER gives its parts in order", () => {
    const parts = readDerParts(
      readDer(der(TAG.sequence, der(TAG.null), der(TAG.integer, Buffer.from([1])), der(TAG.null))),
    );
    expect(parts.map(({ tag }) => tag)).toEqual([TAG.null, TAG.integer, TAG.null]);
  });

  test("a value in DER has a length of at most four octets", () => {
    expect(readDer(Buffer.from("0484000000010a", "hex")).content).toEqual(Buffer.from([0x0a]));
    expect(() => readDer(Buffer.from("048500000000010a", "hex"))).toThrow(RangeError);
  });

  test.each([
    ["2049-12-31T23:59:59Z", TAG.utcTime, "491231235959Z"],
    ["2050-01-01T00:00:00Z", TAG.generalizedTime, "20500101000000Z"],
  ])("a value in DER holds the time %s with the digits of its year", (time, tag, digits) => {
    const { tag: is, content } = readDer(derTime(Date.parse(time)));
    expect([is, content.toString()]).toEqual([tag, digits]);
  });

  test.each([
    ["nothing", ""],
    ["a tag alone", "30"],
    ["fewer octets than its length", "300501"],
    ["a length of five octets", "308500000000010a"],
    ["a length without end", "3080"],
    ["a cut length", "3082ff"],
  ])("a value in DER is refused if it is %s", (_what, hex) => {
    expect(() => readDer(Buffer.from(hex, "hex"))).toThrow(RangeError);
  });
});
