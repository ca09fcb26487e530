import { describe, expect, test } from "bun:test";
import { idBytes, newId } from "../../../src/core/ids.ts";
import {
  decodeVerp,
  encodeVerp,
  MAX_VERP_ORD,
  rewrittenVerpToken,
  verpAddress,
  verpToken,
} from "../../../src/mail/verp.ts";

const KEY = Buffer.alloc(32, 1);
const ID = idBytes("msg", newId("msg", 1_700_000_000_000)) ?? new Uint8Array();

describe("a VERP token", () => {
  test.each([0, 1, 49, 255, 256, MAX_VERP_ORD])("a VERP token names recipient %d of its message", (ord) => {
    const token = encodeVerp(KEY, ID, ord);
    expect(decodeVerp(KEY, token)).toEqual({ messageId: ID, ord });
    expect(decodeVerp(KEY, token.toUpperCase())).toEqual({ messageId: ID, ord });
  });

  test("a VERP token makes a bounce address within 64 octets, the limit that some servers set (RFC 5321 §4.5.3.1.1)", () => {
    const address = verpAddress(encodeVerp(KEY, ID, 3), "bounce.example.com");
    const [local = "", domain] = address.split("@");
    expect(domain).toBe("bounce.example.com");
    expect(local.length).toBeLessThanOrEqual(64);
    expect(decodeVerp(KEY, verpToken(local.toUpperCase()) ?? "")).toEqual({ messageId: ID, ord: 3 });
  });

  test("a VERP token is invalid if any character is altered", () => {
    const token = encodeVerp(KEY, ID, 7);
    for (let at = 0; at < token.length; at++) {
      const altered = token.slice(0, at) + (token[at] === "0" ? "1" : "0") + token.slice(at + 1);
      expect(decodeVerp(KEY, altered)).toBeNull();
    }
  });

  test.each([
    "",
    "0",
    "0".repeat(47),
    "0".repeat(48),
    "0".repeat(49),
    "u".repeat(48),
    "!".repeat(48),
    "é".repeat(48),
  ])("a VERP token is not %j", (token) => {
    expect(decodeVerp(KEY, token)).toBeNull();
  });

  test("made with another key is invalid", () => {
    expect(decodeVerp(KEY, encodeVerp(Buffer.alloc(32, 2), ID, 7))).toBeNull();
  });

  test.each([-1, MAX_VERP_ORD + 1, 1.5])("a VERP token cannot hold the number %d", (ord) => {
    expect(() => encodeVerp(KEY, ID, ord)).toThrow(RangeError);
  });

  test.each(["bounce", "b", "bb+x", "user+b"])("a VERP token is not in the local part %j", (local) => {
    expect(verpToken(local)).toBeNull();
  });

  test.each<[path: string, token: string | null]>([
    ["b+TOKEN@bounce.test", "TOKEN"],
    ["B+token@bounce.test", "token"],
    ["SRS0=Ab+1=XY=sender.test=b+token@forwarder.test", "token"],
    ["SRS1=xyz=first.test==Ab+1=XY=sender.test=b+token@second.test", "token"],
    ["prvs=1234abcdef=b+token@sender.test", "token"],
    ["SRS0=Ab1=XY=sender.test=ann@forwarder.test", null],
    ["xb+token@sender.test", null],
    ["b+token", null],
    ["", null],
  ])("a VERP token in the path %j, rewritten or not, is %j", (path, token) => {
    expect(rewrittenVerpToken(path)).toBe(token);
  });
});
