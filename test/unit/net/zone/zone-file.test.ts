import { expect, test } from "bun:test";
import { textStrings, type ZoneRecord } from "../../../../src/net/zone/records.ts";
import { zoneLine } from "../../../../src/net/zone/zone-file.ts";

const rows: [ZoneRecord, string][] = [
  [{ name: "mx.a.test", ttl: 60, type: "A", data: "192.0.2.1" }, "mx.a.test. 60 IN A 192.0.2.1"],
  [{ name: "mx.a.test", ttl: 60, type: "AAAA", data: "2001:db8::1" }, "mx.a.test. 60 IN AAAA 2001:db8::1"],
  [{ name: "a.test", ttl: 60, type: "NS", data: "ns.a.test" }, "a.test. 60 IN NS ns.a.test."],
  [
    { name: "a.test", ttl: 60, type: "MX", data: { preference: 10, exchange: "mx.a.test" } },
    "a.test. 60 IN MX 10 mx.a.test.",
  ],
  [{ name: "a.test", ttl: 60, type: "MX", data: { preference: 0, exchange: "" } }, "a.test. 60 IN MX 0 ."],
  [
    { name: "a.test", ttl: 60, type: "TXT", data: "v=DMARC1; p=none" },
    'a.test. 60 IN TXT "v=DMARC1; p=none"',
  ],
  [
    { name: "a.test", ttl: 60, type: "TXT", data: 'a"b\\c\nd\u00e9' },
    'a.test. 60 IN TXT "a\\034b\\092c\\010d\\195\\169"',
  ],
  [{ name: "a.test", ttl: 60, type: "TXT", data: "" }, 'a.test. 60 IN TXT ""'],
  [{ name: "a.test", ttl: 60, type: "HINFO", data: { cpu: "a", os: "" } }, 'a.test. 60 IN HINFO "a" ""'],
];
test.each(rows)("%j is one line of a zone file", (record, line) => {
  expect(zoneLine(record)).toBe(line);
});

test.each([
  [0, [0]],
  [255, [255]],
  [256, [255, 1]],
  [510, [255, 255]],
  [511, [255, 255, 1]],
])("a text of %d octets is cut into strings of 255 at most", (octets, lengths) => {
  expect(textStrings("x".repeat(octets)).map(({ length }) => length)).toEqual(lengths);
});
