import { describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { MAX_DEPTH, MAX_FAULTS } from "../../../../src/mail/reports/dmarc-report.ts";
import { MAX_ATTACHMENTS, readReports } from "../../../../src/mail/reports/read-reports.ts";
import { MAX_DOMAINS, MAX_ROWS, MAX_VALUE_CHARS } from "../../../../src/mail/reports/report.ts";
import { MAX_FAILURES, MAX_POLICIES } from "../../../../src/mail/reports/tls-report.ts";
import {
  FREE_OCTETS,
  textsIn,
  MAX_PACKED_OCTETS,
  MAX_RATIO,
  MAX_UNPACKED_OCTETS,
} from "../../../../src/mail/reports/unpack.ts";
import { MAX_ENTRIES } from "../../../../src/mail/reports/zip-entries.ts";
import {
  dmarcXml,
  fileLetter,
  letterOctets,
  mixedLetter,
  recordXml,
  zipOf,
} from "../../../support/domain-reports.ts";

const DOMAIN = "example.com";
const XML = dmarcXml({ domain: DOMAIN, records: [{ ip: "192.0.2.1", count: 3, spf: "fail" }] });
const FOUND = {
  kind: "dmarc",
  organization: "Reporter",
  reportId: "r1",
  policyDomain: DOMAIN,
  rows: [{ domain: DOMAIN, source: "192.0.2.1", result: "dkim", disposition: "none", count: 3 }],
};
const bytes = (text: string) => Buffer.from(text);
/** The reports in a message whose body is the file. */
const inFile = (file: Uint8Array, about = {}) => readReports(letterOctets(fileLetter(file, about)));
const rowsIn = async (xml: string) => (await inFile(bytes(xml)))[0]?.rows;

describe("a report is read", () => {
  const mixed = (file: Uint8Array, name: string, type: string) =>
    readReports(letterOctets(mixedLetter(file, name, type)));
  const rows: [form: string, read: () => Promise<unknown[]>][] = [
    ["as gzip, the whole message", () => inFile(gzipSync(XML))],
    [
      "as ZIP, the whole message",
      () => inFile(zipOf([bytes(XML)]), { type: "application/zip", name: "report.zip" }),
    ],
    ["as text, the whole message", () => inFile(bytes(XML), { type: "text/xml", name: "report.xml" })],
    ["as gzip next to a text", () => mixed(gzipSync(XML), "report.xml.gz", "application/gzip")],
    ["as gzip that is called XML", () => mixed(gzipSync(XML), "report.xml", "text/xml")],
    ["as ZIP that is called gzip", () => mixed(zipOf([bytes(XML)]), "report.xml.gz", "application/x-gzip")],
    ["as XML that is called gzip", () => inFile(bytes(XML))],
    ["in a ZIP that is not compressed", () => inFile(zipOf([bytes(XML)], { method: 0 }))],
    ["as gzip in a ZIP", () => inFile(zipOf([gzipSync(XML)]))],
    ["after another file in a ZIP", () => inFile(zipOf([bytes("Read me"), bytes(XML)]))],
    ["in a ZIP that claims no size", () => inFile(zipOf([bytes(XML)], { claimed: 0 }))],
    ["as gzip with a line end after it", () => inFile(Buffer.concat([gzipSync(XML), bytes("\r\n")]))],
    [
      "as the text of the message",
      () => readReports(bytes(`From: a@b.test\r\nContent-Type: text/plain\r\n\r\n${XML}`)),
    ],
    ["in UTF-16 with a byte order mark", () => inFile(Buffer.from(`\ufeff${XML}`, "utf16le"))],
    ["in UTF-8 with a byte order mark", () => inFile(bytes(`\ufeff${XML}`))],
    ["in UTF-8 that is declared as UTF-16", () => inFile(bytes(XML.replace("UTF-8", "UTF-16")))],
    ["in a declared encoding", () => inFile(Buffer.from(XML.replace("UTF-8", "windows-1252"), "latin1"))],
    ["in an encoding that nobody knows", () => inFile(bytes(XML.replace("UTF-8", "x-none")))],
    [
      "with the namespace of RFC 9990",
      () => inFile(bytes(XML.replace("<feedback>", '<feedback xmlns="urn:ietf:params:xml:ns:dmarc-2.0">'))),
    ],
    [
      "with a prefix before its name",
      () =>
        inFile(
          bytes(
            XML.replaceAll("feedback>", "n:feedback>").replace("<n:feedback>", '<n:feedback xmlns:n="x">'),
          ),
        ),
    ],
    [
      "in an element that never ends",
      () => inFile(bytes(XML.replace("<feedback>", '<xs:schema xmlns:xs="x"><feedback>'))),
    ],
    [
      "with the disposition of RFC 9990",
      () => inFile(bytes(XML.replace(">none</disposition>", ">pass</disposition>"))),
    ],
    [
      "with values in capitals",
      () => inFile(bytes(XML.replace("<dkim>pass", "<dkim> Pass ").replace(">none</disp", ">None</disp"))),
    ],
    ["without a domain in From", () => inFile(bytes(XML.replace(/<header_from>.*?<\/header_from>/, "")))],
    ["with times that have fractions", () => inFile(bytes(XML.replace(/<begin>(\d+)/, "<begin>$1.0")))],
    ["with a bare ampersand", () => inFile(bytes(XML.replace("dmarc@reporter.test", "A & B")))],
    [
      "with an address that is no text",
      () => inFile(bytes(XML.replace("dmarc@reporter.test", "<a@b.test>"))),
    ],
  ];
  test.each(rows)("a report is read %s", async (_form, read) => {
    expect(await read()).toMatchObject([FOUND]);
  });
});

describe("no report is read", () => {
  const lol = `<!DOCTYPE lolz [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>`;
  const external = `<!DOCTYPE feedback [<!ENTITY x SYSTEM "file:///etc/passwd">]>`;
  const zeros = Buffer.alloc(MAX_UNPACKED_OCTETS);
  const rows: [what: string, file: () => Uint8Array][] = [
    ["an empty file", () => Buffer.alloc(0)],
    ["text", () => bytes("Hello")],
    ["JSON of another kind", () => bytes('{"a":[1]}')],
    ["deep JSON", () => bytes("[".repeat(1_000_000))],
    ["XML of another kind", () => bytes("<html><body>Hi</body></html>")],
    [
      "nested entities",
      () => bytes(XML.replace("<feedback>", `${lol}<feedback>`).replace("Reporter", "&c;")),
    ],
    [
      "an external entity",
      () => bytes(XML.replace("<feedback>", `${external}<feedback>`).replace("Reporter", "&x;")),
    ],
    ["a bomb of gzip", () => gzipSync(zeros)],
    ["a bomb of ZIP", () => zipOf([zeros])],
    ["a bomb of ZIP that claims a small size", () => zipOf([zeros], { claimed: 100 })],
    ["bombs in a ZIP", () => zipOf(Array.from({ length: MAX_ENTRIES }, () => gzipSync(zeros)))],
    ["gzip in gzip in gzip", () => gzipSync(gzipSync(gzipSync(XML)))],
    ["gzip that is cut short", () => gzipSync(XML).subarray(0, 200)],
    ["a ZIP that is cut short", () => zipOf([bytes(XML)]).subarray(0, -10)],
    ["a report without an id", () => bytes(XML.replace("<report_id>r1</report_id>", ""))],
    ["a report without a domain", () => bytes(XML.replace(`<domain>${DOMAIN}</domain>`, ""))],
    ["a report without times", () => bytes(XML.replace(/<begin>\d+/, "<begin>now"))],
  ];
  test.each(rows)("no report is read from %s", async (_what, file) => {
    expect(await inFile(file())).toEqual([]);
  });

  test("no report is read from a part of a ZIP that points elsewhere", async () => {
    const archive = zipOf([bytes(XML)]);
    for (const at of [10, 16]) {
      const damaged = Buffer.from(archive);
      damaged.writeUInt32LE(0xfffffff0, damaged.length - 22 + at);
      expect(await inFile(damaged)).toEqual([]);
    }
    const central = archive.indexOf(Buffer.from([0x50, 0x4b, 1, 2]));
    archive.writeUInt32LE(0xfffffff0, central + 42);
    expect(await inFile(archive)).toEqual([]);
  });
});

describe("at a limit and one past it", () => {
  /** XML that compresses only so well, of exactly that many octets. */
  const padded = (octets: number) => `${XML.trimEnd()}${" ".repeat(octets - XML.trimEnd().length)}`;
  test("a report may have so many octets", async () => {
    expect(await inFile(bytes(padded(MAX_UNPACKED_OCTETS)))).toHaveLength(1);
    expect(await inFile(bytes(padded(MAX_UNPACKED_OCTETS + 1)))).toEqual([]);
  });

  test("a packed file may have so many octets", async () => {
    const packed = gzipSync(XML);
    const trailing = (octets: number) => Buffer.concat([packed, Buffer.alloc(octets - packed.length)]);
    expect(await inFile(trailing(MAX_PACKED_OCTETS))).toHaveLength(1);
    expect(await inFile(trailing(MAX_PACKED_OCTETS + 1))).toEqual([]);
  });

  test("a file may be unpacked at so much a ratio", async () => {
    // The size whose packed form is just large enough for it.
    let size = FREE_OCTETS;
    for (let before = 0; before !== size; size = MAX_RATIO * gzipSync(padded(size)).length) before = size;
    expect(size).toBeGreaterThan(FREE_OCTETS);
    expect(await inFile(gzipSync(padded(size)))).toHaveLength(1);
    expect(await inFile(gzipSync(padded(size + 1)))).toEqual([]);
  });

  test("a small file may be unpacked at any ratio", async () => {
    const zeros = gzipSync(Buffer.alloc(FREE_OCTETS));
    expect(zeros.length * MAX_RATIO).toBeLessThan(FREE_OCTETS);
    const room = { left: FREE_OCTETS };
    expect(textsIn(zeros, room)).toHaveLength(1);
    expect(room.left).toBe(0);
    expect(textsIn(gzipSync(Buffer.alloc(FREE_OCTETS + 1)), { left: MAX_UNPACKED_OCTETS })).toEqual([]);
  });

  test("an archive may have so many files", async () => {
    const files = (count: number) => [...Array.from({ length: count - 1 }, () => bytes("x")), bytes(XML)];
    expect(await inFile(zipOf(files(MAX_ENTRIES)))).toHaveLength(1);
    expect(await inFile(zipOf(files(MAX_ENTRIES + 1)))).toEqual([]);
  });

  test("so many attachments of a message are looked at", async () => {
    const part = (file: string) => ["--b", 'Content-Type: application/xml; name="x.xml"', "", file];
    const mail = (others: number) =>
      bytes(
        [
          'Content-Type: multipart/mixed; boundary="b"',
          "",
          ...Array.from({ length: others }, () => part("<a/>")).flat(),
          ...part(XML),
          "--b--",
          "",
        ].join("\r\n"),
      );
    expect(await readReports(mail(MAX_ATTACHMENTS - 1))).toHaveLength(1);
    expect(await readReports(mail(MAX_ATTACHMENTS))).toEqual([]);
  });

  test("so many different rows are kept, and the sources of others are added up", async () => {
    const records = Array.from({ length: MAX_ROWS + 3 }, (_, at) => ({
      ip: `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`,
    }));
    expect(await rowsIn(dmarcXml({ domain: DOMAIN, records: records.slice(0, MAX_ROWS) }))).toHaveLength(
      MAX_ROWS,
    );
    const rows = await rowsIn(dmarcXml({ domain: DOMAIN, records }));
    expect(rows).toHaveLength(MAX_ROWS + 1);
    expect(rows?.at(-1)).toMatchObject({ source: "other", count: 3 });
  });

  test("so many domains in From are kept", async () => {
    const records = Array.from({ length: MAX_DOMAINS + 1 }, (_, at) => ({
      ip: "192.0.2.1",
      from: `d${at}.${DOMAIN}`,
    }));
    expect(await rowsIn(dmarcXml({ domain: DOMAIN, records }))).toHaveLength(MAX_DOMAINS);
  });

  test("so many faults of XML are overlooked", async () => {
    const faulty = (faults: number) => bytes(XML.replace("Reporter", `Reporter${"&x;".repeat(faults)}`));
    expect(await inFile(faulty(MAX_FAULTS))).toHaveLength(1);
    expect(await inFile(faulty(MAX_FAULTS + 1))).toEqual([]);
  });

  test("elements may be so deep", async () => {
    const deep = (depth: number) =>
      bytes(XML.replace("<record>", `${"<a>".repeat(depth - 1)}${"</a>".repeat(depth - 1)}<record>`));
    expect(await inFile(deep(MAX_DEPTH))).toHaveLength(1);
    expect(await inFile(deep(MAX_DEPTH + 1))).toEqual([]);
  });

  test("a value is kept up to so many characters", async () => {
    const [report] = await inFile(bytes(XML.replace("Reporter", "R".repeat(MAX_VALUE_CHARS + 1))));
    expect(report?.organization).toBe("R".repeat(MAX_VALUE_CHARS));
  });

  test("a huge attribute holds no report up", async () => {
    expect(
      await inFile(bytes(XML.replace("<feedback>", `<feedback a="${"x".repeat(4_000_000)}">`))),
    ).toMatchObject([FOUND]);
  });

  test("a million rows are too much, and none of them is kept", async () => {
    const row = recordXml({ ip: "192.0.2.1" }, DOMAIN);
    const xml = XML.replace("</feedback>", `${row.repeat(1_000_000)}</feedback>`);
    expect(await inFile(gzipSync(xml))).toEqual([]);
  });
});

describe("a row of a report", () => {
  test.each([
    ["no real address", { ip: "fe80::x" }, [{ source: "other", count: 1 }]],
    ["an address in another spelling", { ip: "2001:DB8:0::1" }, [{ source: "2001:db8::1" }]],
    ["an IPv4 address on an IPv6 socket", { ip: "::ffff:192.0.2.1" }, [{ source: "192.0.2.1" }]],
    ["no messages", { ip: "192.0.2.1", count: 0 }, []],
    ["less than no messages", { ip: "192.0.2.1", count: -5 }, []],
    ["more messages than there are", { ip: "192.0.2.1", count: 1_000_000_001 }, []],
    ["a domain that the policy cannot cover", { ip: "192.0.2.1", from: "example.net" }, []],
    [
      "a domain below that of the policy",
      { ip: "192.0.2.1", from: "A.Example.com." },
      [{ domain: "a.example.com" }],
    ],
    ["a disposition that is unknown", { ip: "192.0.2.1", disposition: "eaten" }, [{ disposition: "none" }]],
    ["neither DKIM nor SPF", { ip: "192.0.2.1", dkim: "fail", spf: "fail" } as const, [{ result: "fail" }]],
    ["SPF alone", { ip: "192.0.2.1", dkim: "fail" } as const, [{ result: "spf" }]],
  ])("a row of a report with %s", async (_what, record, rows) => {
    expect(await rowsIn(dmarcXml({ domain: DOMAIN, records: [record] }))).toMatchObject(rows);
  });
});

describe("a TLS report", () => {
  const policy = (domain: string, failures: unknown[] = [], count: unknown = 1) => ({
    policy: { "policy-type": "sts", "policy-domain": domain },
    summary: { "total-successful-session-count": count },
    "failure-details": failures,
  });
  const report = (policies: unknown[]) =>
    inFile(
      bytes(
        JSON.stringify({
          "organization-name": "Reporter",
          "date-range": { "start-datetime": "2026-01-01T00:00:00Z", "end-datetime": "2026-01-01T23:59:59Z" },
          "report-id": "t1",
          policies,
        }),
      ),
    );

  test("a TLS report is one report for each domain", async () => {
    const found = await report([
      policy("a.test"),
      policy("B.test."),
      policy("a.test", [{ "result-type": "tlsa-invalid", "failed-session-count": 2 }]),
    ]);
    const row = { source: "", result: "success", disposition: "", count: 1 };
    expect(found).toEqual([
      {
        kind: "tls",
        organization: "Reporter",
        reportId: "t1",
        policyDomain: "a.test",
        begin: Date.UTC(2026, 0, 1),
        end: Date.UTC(2026, 0, 1, 23, 59, 59),
        rows: [
          { ...row, domain: "a.test", count: 2 },
          { ...row, domain: "a.test", result: "tlsa-invalid", count: 2 },
        ],
      },
      expect.objectContaining({ policyDomain: "b.test", rows: [{ ...row, domain: "b.test" }] }),
    ]);
  });

  test.each([
    ["a number", 5],
    ["a policy that is none", [null, 5, "x", {}, { policy: [] }]],
    ["a domain that is none", [policy("not a domain")]],
    ["a count that is none", [policy("a.test", [], "many")]],
  ])("a TLS report has no rows of %s", async (_what, policies) => {
    expect(await report(policies as unknown[])).toEqual([]);
  });

  test("a TLS report has so many policies and failures of one", async () => {
    const policies = Array.from({ length: MAX_POLICIES + 1 }, () => policy("a.test"));
    expect((await report(policies))[0]?.rows).toMatchObject([{ count: MAX_POLICIES }]);
    const failure = { "result-type": "tlsa-invalid", "failed-session-count": 1 };
    const failures = Array.from({ length: MAX_FAILURES + 1 }, () => failure);
    expect((await report([policy("a.test", failures, 0)]))[0]?.rows).toMatchObject([{ count: MAX_FAILURES }]);
  });
});
