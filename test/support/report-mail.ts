import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface ReportPart {
  /** Its Content-Type, with further header fields on separate lines. */
  type: string;
  encoding?: "base64" | "quoted-printable";
  lines: readonly string[];
}

export interface Report {
  /** Header lines that replace the usual ones of the same name. A Content-Type has no boundary. */
  headers?: readonly string[];
  parts: readonly ReportPart[];
  /** If set, the message ends before this text. */
  cut?: string;
}

const USUAL = [
  "From: Mail Delivery System <MAILER-DAEMON@mx.example.net>",
  "To: ann@example.com",
  "Subject: Undelivered Mail Returned to Sender",
];

/** Returns a report of the given parts as bytes on the wire. */
export function reportMail({ headers = [], parts, cut }: Report): Buffer {
  const named = new Set(headers.map(nameOf));
  const type = headers.find((line) => nameOf(line) === "content-type") ?? REPORT;
  const lines = [
    ...headers.filter((line) => line !== type),
    ...USUAL.filter((line) => !named.has(nameOf(line))),
    "MIME-Version: 1.0",
    `${type}; boundary="=b="`,
    "",
    ...parts.flatMap(partLines),
    "--=b=--",
    "",
  ];
  const text = lines.join("\r\n");
  return Buffer.from(cut === undefined ? text : text.slice(0, text.indexOf(cut)), "utf8");
}

const REPORT = "Content-Type: multipart/report; report-type=delivery-status";

function nameOf(line: string): string {
  return line.slice(0, line.indexOf(":")).toLowerCase();
}

function partLines({ type, encoding, lines }: ReportPart): string[] {
  const header = [
    `Content-Type: ${type}`,
    ...(encoding === undefined ? [] : [`Content-Transfer-Encoding: ${encoding}`]),
  ];
  return ["--=b=", ...header, "", ...encoded(lines, encoding), ""];
}

function encoded(lines: readonly string[], encoding: ReportPart["encoding"]): readonly string[] {
  if (encoding === "base64")
    return (
      Buffer.from(lines.join("\r\n"))
        .toString("base64")
        .match(/.{1,76}/g) ?? []
    );
  return encoding === "quoted-printable" ? lines.map(quoted) : lines;
}

/** Encodes more than needed (RFC 2045 §6.7), as some programs do. */
function quoted(line: string): string {
  const octets = [...Buffer.from(line)].map((octet) =>
    /[A-Za-z0-9 ,.:-]/.test(String.fromCharCode(octet)) && octet < 0x80
      ? String.fromCharCode(octet)
      : `=${octet.toString(16).toUpperCase().padStart(2, "0")}`,
  );
  return octets.join("");
}

export const WORDS: ReportPart = {
  type: "text/plain; charset=utf-8",
  lines: ["This is the mail system.", "Your mail could not be delivered."],
};
export const ORIGINAL: ReportPart = {
  type: "message/rfc822",
  lines: [
    "From: ann@example.com",
    "To: bob@example.org",
    "Message-ID: <m1@example.com>",
    "Subject: hi",
    "",
    "hello",
  ],
};
export const HEADERS: ReportPart = { type: "text/rfc822-headers", lines: ORIGINAL.lines.slice(0, 4) };

/** A message/delivery-status part (RFC 3464 §2) with the given recipient fields. */
export function statusPart(...lines: readonly string[]): ReportPart {
  return {
    type: "message/delivery-status",
    lines: [
      "Reporting-MTA: dns; mx.example.net",
      "Arrival-Date: Mon, 6 Jan 2025 10:00:00 +0000",
      "",
      ...lines,
    ],
  };
}

/** The fields of bob@example.org. */
export function bob(diagnostic: string, status = "5.0.0", action = "failed"): string[] {
  return [
    "Final-Recipient: rfc822; bob@example.org",
    `Action: ${action}`,
    `Status: ${status}`,
    ...(diagnostic === "" ? [] : [`Diagnostic-Code: smtp; ${diagnostic}`]),
  ];
}

export interface Sample {
  name: string;
  /** Recipient ("-" for none), outcome, category and other fields of each, separated by "; "; "" if it is no bounce. */
  expected: string;
  raw: Buffer;
}

function fixture(file: string): string {
  return readFileSync(join(import.meta.dir, "../fixtures", file), "utf8");
}

/** Reads a fixture of messages one after another, each after a line `=== name | expected`. */
export function samplesIn(file: string): Sample[] {
  return fixture(file)
    .split(/^=== /m)
    .slice(1)
    .map((block) => {
      const end = block.indexOf("\n");
      const [name = "", expected = ""] = block.slice(0, end).split(" | ");
      return { name, expected, raw: Buffer.from(block.slice(end + 1).replaceAll("\n", "\r\n"), "utf8") };
    });
}

const PARTS: Readonly<Record<string, ReportPart>> = { words: WORDS, original: ORIGINAL, headers: HEADERS };

/** Reads a fixture of reports, one a line; the file's first line describes its columns. */
export function reportsIn(file: string): Sample[] {
  const rows = fixture(file).trimEnd().split("\n").slice(1);
  return rows.map((row) => {
    const [name = "", expected = "", header = "", ...parts] = row.replaceAll("\\n", "\n").split("\t");
    const headers = header === "-" ? [] : header.split("\n");
    return { name, expected, raw: reportMail({ headers, parts: parts.map(partIn) }) };
  });
}

/** Reads `status: fields`, `status as text/plain (base64): fields`, `type: lines`, or the name of a usual part. */
function partIn(column: string): ReportPart {
  const usual = PARTS[column];
  if (usual !== undefined) return usual;
  const [, type = "", as, encoding, text = ""] =
    /^(.*?)(?: as (.*?))?(?: \((base64|quoted-printable)\))?: (.*)$/s.exec(column) ?? [];
  const lines = text.split("\n");
  const part = type === "status" ? statusPart(...lines) : { type, lines };
  const encoded = encoding === undefined ? {} : { encoding: encoding as ReportPart["encoding"] };
  return { ...part, ...(as === undefined ? {} : { type: as }), ...encoded };
}

/** Describes recipients in the form that a sample expects, with the fields that it names. */
export function toldOf(recipients: readonly object[], expected: string): string {
  const wanted = expected.split("; ");
  return recipients
    .map((each, at) => {
      const found: Record<string, unknown> = { ...each };
      const [, ...named] = (wanted[at] ?? "").split(", ").map((field) => field.split(" ", 1)[0] ?? "");
      const about = found.outcome === null ? `${found.action}` : `${found.outcome} ${found.category}`;
      return [`${found.recipient ?? "-"} ${about}`, ...named.map((name) => `${name} ${found[name]}`)].join(
        ", ",
      );
    })
    .join("; ");
}
