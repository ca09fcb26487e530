import { deflateRawSync } from "node:zlib";

/** A message to deliver. */
interface ReportLetter {
  to: string;
  mailFrom?: string;
  headers: readonly string[];
  body: string;
}

const DAY_MS = 86_400_000;
const LINE_CHARS = 76;

/** One record of a DMARC report. */
export interface ReportedMail {
  ip: string;
  count?: number;
  dkim?: "pass" | "fail";
  spf?: "pass" | "fail";
  disposition?: string;
  from?: string | null;
}

export interface DmarcForm {
  domain: string;
  org?: string;
  id?: string;
  /** Days before today. */
  daysAgo?: number;
  records: readonly ReportedMail[];
}

/** The text of a DMARC aggregate report about one UTC day. */
export function dmarcXml({ domain, org = "Reporter", id = "r1", daysAgo = 1, records }: DmarcForm): string {
  const begin = Math.floor((Date.now() - daysAgo * DAY_MS) / DAY_MS) * (DAY_MS / 1000);
  return `<?xml version="1.0" encoding="UTF-8"?>
<feedback>
  <report_metadata><org_name>${org}</org_name><email>dmarc@reporter.test</email><report_id>${id}</report_id>
    <date_range><begin>${begin}</begin><end>${begin + 86_399}</end></date_range></report_metadata>
  <policy_published><domain>${domain}</domain><adkim>r</adkim><aspf>r</aspf><p>none</p></policy_published>
  ${records.map((record) => recordXml(record, domain)).join("\n  ")}
</feedback>
`;
}

export function recordXml(
  { ip, count = 1, dkim = "pass", spf = "pass", ...more }: ReportedMail,
  domain: string,
): string {
  const { disposition = "none", from = domain } = more;
  const shown = from === null ? "" : `<header_from>${from}</header_from>`;
  return `<record><row><source_ip>${ip}</source_ip><count>${count}</count><policy_evaluated><disposition>${disposition}</disposition><dkim>${dkim}</dkim><spf>${spf}</spf></policy_evaluated></row><identifiers>${shown}</identifiers></record>`;
}

/** A message whose body is one file, as Google and Mimecast send reports. */
export function fileLetter(
  file: Uint8Array,
  {
    from = "dmarc@reporter.test",
    to = "dmarc@mail.test",
    type = "application/gzip",
    name = "report.xml.gz",
  } = {},
): ReportLetter {
  return {
    to,
    mailFrom: from,
    headers: [`From: ${from}`, `To: ${to}`, "Subject: Report Domain", ...fileFields(type, name)],
    body: base64Lines(file),
  };
}

/** The bytes of a letter. */
export function letterOctets({ headers, body }: ReportLetter): Uint8Array {
  return Buffer.from([...headers, "", body, ""].join("\r\n"), "latin1");
}

/** A message with a text part and a file, as Microsoft and Yahoo send reports. */
export function mixedLetter(file: Uint8Array, name: string, type: string): ReportLetter {
  const lines = [
    "--b",
    "Content-Type: text/plain",
    "",
    "This is a report.",
    "--b",
    ...fileFields(type, name),
    "",
    base64Lines(file),
    "--b--",
  ];
  return {
    to: "dmarc@mail.test",
    headers: [
      "From: dmarc@reporter.test",
      'Content-Type: multipart/mixed; boundary="b"',
      "MIME-Version: 1.0",
    ],
    body: lines.join("\r\n"),
  };
}

function fileFields(type: string, name: string): string[] {
  return [
    `Content-Type: ${type}; name="${name}"`,
    `Content-Disposition: attachment; filename="${name}"`,
    "Content-Transfer-Encoding: base64",
  ];
}

function base64Lines(file: Uint8Array): string {
  const text = Buffer.from(file).toString("base64");
  return (text.match(new RegExp(`.{1,${LINE_CHARS}}`, "g")) ?? []).join("\r\n");
}

/** A ZIP archive. @param claimed the size that it says its files have; left out: the real one */
export function zipOf(
  files: readonly Uint8Array[],
  { method = 8, claimed }: { method?: 0 | 8; claimed?: number } = {},
): Buffer {
  const locals: Buffer[] = [];
  const centrals: Buffer[] = [];
  let at = 0;
  for (const file of files) {
    const packed = method === 8 ? deflateRawSync(file) : Buffer.from(file);
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(method, 8);
    const central = Buffer.alloc(46);
    central.writeUInt32LE(0x02014b50, 0);
    central.writeUInt16LE(method, 10);
    central.writeUInt32LE(packed.length, 20);
    central.writeUInt32LE(claimed ?? file.length, 24);
    central.writeUInt32LE(at, 42);
    locals.push(local, packed);
    centrals.push(central);
    at += local.length + packed.length;
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(files.length, 10);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...locals, ...centrals, end]);
}
