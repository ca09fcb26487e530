import { describe, expect, test } from "bun:test";
import {
  decodeBase32,
  encodeBase32,
  idBytes,
  idCeiling,
  idFloor,
  idFromBytes,
  isId,
  newId,
  randomBase62,
} from "../../../src/core/ids.ts";

describe("ids", () => {
  test("an id is its prefix and 26 characters of base32", () => {
    expect(newId("msg", 1_700_000_000_000)).toMatch(/^msg_[0-9a-hjkmnp-tv-z]{26}$/);
  });

  test("ids made later sort later, within one millisecond too", () => {
    const ids = Array.from({ length: 2000 }, (_, at) =>
      newId("evt", 1_700_000_000_000 + Math.floor(at / 1000)),
    );
    expect([...ids].sort()).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("ids of one millisecond sort in the order they are made, whatever is made between them", () => {
    const at = 1_700_000_000_000;
    const ids = Array.from({ length: 2000 }, (_, turn) => {
      newId("dlv", at - 1 - (turn % 7));
      return newId("evt", at);
    });
    expect([...ids].sort()).toEqual(ids);
    for (const id of ids) {
      const uuid = idBytes("evt", id);
      expect([(uuid?.[6] ?? 0) >> 4, (uuid?.[8] ?? 0) >> 6]).toEqual([7, 2]);
    }
  });

  test("the floor of a time separates the ids made before it from those made at or after it", () => {
    const at = 1_700_000_000_000;
    const floor = idFloor("msg", at);
    expect(newId("msg", at - 1) < floor).toBe(true);
    expect(newId("msg", at) >= floor).toBe(true);
  });

  test("the ceiling of a prefix sorts after every possible id", () => {
    const last = idFromBytes("msg", new Uint8Array(16).fill(255));
    expect(isId("msg", last)).toBe(true);
    expect(last < idCeiling("msg")).toBe(true);
  });

  test("an id survives a round trip through its bytes", () => {
    for (const fill of [0, 1, 127, 128, 255]) {
      const bytes = new Uint8Array(16).fill(fill);
      expect(idBytes("msg", idFromBytes("msg", bytes))).toEqual(bytes);
    }
  });

  test.each([
    ["another prefix", "key_00000000000000000000000000"],
    ["too short", "msg_0000000000000000000000000"],
    ["too long", "msg_000000000000000000000000000"],
    ["a capital", "msg_0000000000000000000000000A"],
    ["a path", "msg_../../../../../../../../.."],
    ["empty", ""],
  ])("%s is not an id", (_, text) => {
    expect(isId("msg", text)).toBe(false);
    expect(idBytes("msg", text)).toBeNull();
  });

  test("base32 encodes any length of bytes and decodes any letter case", () => {
    for (let length = 1; length < 40; length++) {
      const bytes = crypto.getRandomValues(new Uint8Array(length));
      const text = encodeBase32(bytes);
      expect(decodeBase32(text, length)).toEqual(bytes);
      expect(decodeBase32(text.toUpperCase(), length)).toEqual(bytes);
    }
  });

  test.each([
    ["a letter outside the alphabet", "u0000000000000000000000000"],
    ["bits beyond the bytes", "z0000000000000000000000000"],
    ["another length", "0000"],
  ])("base32 refuses %s", (_, text) => {
    expect(decodeBase32(text, 16)).toBeNull();
  });

  test("random base62 has the requested length and only its alphabet", () => {
    expect(randomBase62(32)).toMatch(/^[0-9A-Za-z]{32}$/);
    expect(randomBase62(32)).not.toBe(randomBase62(32));
  });
});
