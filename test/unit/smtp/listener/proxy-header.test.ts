import { expect, test } from "bun:test";
import { isIP } from "node:net";
import { MAX_PROXY_HEADER_OCTETS, readProxyHeader } from "../../../../src/smtp/listener/proxy-header.ts";
import { numbers } from "../../../smtp/mutations.ts";

const SIGNATURE = "0d0a0d0a000d0a515549540a";
const V4 = "cb007109" + "c0000201" + "d903" + "0019"; // 203.0.113.9:55555 to 192.0.2.1:25
const V6 = "20010db8000000000000000000000009" + "20010db8000000000000000000000001" + "d9030019";
const MAPPED = "00000000000000000000ffffcb007109" + "00000000000000000000ffffc0000201" + "d9030019";

/** A header of these fields, in hex. Its length field is the actual length unless given. */
function header(command: string, family: string, rest: string, length = rest.length / 2): Buffer {
  return Buffer.from(SIGNATURE + command + family + length.toString(16).padStart(4, "0") + rest, "hex");
}

const filler = (octets: number): string =>
  `04${(octets - 3).toString(16).padStart(4, "0")}${"00".repeat(octets - 3)}`;
const ROOM = MAX_PROXY_HEADER_OCTETS - 16;

const taken: [name: string, bytes: Buffer, ip: string | null][] = [
  ["TCP over IPv4", header("21", "11", V4), "203.0.113.9"],
  ["TCP over IPv6", header("21", "21", V6), "2001:db8::9"],
  [
    "an IPv4 client of an IPv6 socket is known by its IPv4 address",
    header("21", "21", MAPPED),
    "203.0.113.9",
  ],
  ["extensions after the addresses are skipped", header("21", "11", `${V4}${filler(40)}`), "203.0.113.9"],
  ["the longest header", header("21", "11", V4 + filler(ROOM - 12)), "203.0.113.9"],
  ["LOCAL, for which the proxy speaks itself", header("20", "00", ""), null],
  ["LOCAL with addresses, which count for nothing", header("20", "11", V4), null],
  ["LOCAL of a family we do not know", header("20", "31", "00".repeat(216)), null],
];

const refused: [name: string, bytes: Buffer][] = [
  ["version 1", Buffer.from("PROXY TCP4 203.0.113.9 192.0.2.1 55555 25\r\n")],
  ["a command of SMTP", Buffer.from("EHLO client.example\r\n")],
  ["TLS", Buffer.from("160301", "hex")],
  ["the signature with one octet wrong", Buffer.from(`${SIGNATURE.slice(0, -2)}0b`, "hex")],
  ["another version", header("11", "11", V4)],
  ["an unknown command", header("22", "11", V4)],
  ["UDP over IPv4", header("21", "12", V4)],
  ["a UNIX socket", header("21", "31", "00".repeat(216))],
  ["no family", header("21", "00", "")],
  ["an unknown family", header("21", "41", V4)],
  ["addresses too short for IPv4", header("21", "11", V4.slice(2))],
  ["addresses too short for IPv6", header("21", "21", V4)],
  ["one octet too long", header("21", "11", "", ROOM + 1)],
  ["the greatest length there is", header("21", "11", "", 0xffff)],
];

test.each(taken)("accepted: %s", (_name, bytes, ip) => {
  const whole = { kind: "header" as const, octets: bytes.length, ip };
  expect(readProxyHeader(bytes)).toEqual(whole);
  expect(readProxyHeader(Buffer.concat([bytes, Buffer.from("EHLO x\r\n")]))).toEqual(whole);
  for (let octets = 0; octets < bytes.length; octets++)
    expect(readProxyHeader(bytes.subarray(0, octets))).toEqual({ kind: "more" });
});

test.each(refused)("refused without reading further: %s", (_name, bytes) => {
  expect(readProxyHeader(bytes)).toEqual({ kind: "bad" });
  const kinds = Array.from(bytes, (_octet, at) => readProxyHeader(bytes.subarray(0, at)).kind);
  expect(
    kinds.every((kind, at) => kind === "bad" || (kind === "more" && !kinds.slice(0, at).includes("bad"))),
  ).toBe(true);
});

test("random octets give incomplete, invalid or a header and never an exception, and a header has its announced length", () => {
  const next = numbers(1);
  for (let round = 0; round < 50_000; round++) {
    const bytes = Buffer.concat([
      (taken[next(taken.length)] ?? taken[0])?.[1] ?? Buffer.alloc(0),
      Buffer.alloc(next(50), next(256)),
    ]);
    // Mostly leaves the signature alone, because the faults come after it.
    for (let changes = next(4); changes > 0; changes--)
      bytes[(next(8) === 0 ? 0 : 12) + next(Math.min(30, bytes.length - 12))] = next(256);
    const read = readProxyHeader(bytes);
    if (read.kind === "more") expect(bytes.length).toBeLessThan(MAX_PROXY_HEADER_OCTETS);
    if (read.kind === "header") {
      expect(read.octets).toBe(16 + bytes.readUInt16BE(14));
      expect(read.ip === null || isIP(read.ip) > 0).toBe(true);
    }
  }
});
