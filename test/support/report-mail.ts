export interface ReportPart {
  /** Its Content-Type, with further header fields on separate lines. */
  type: string;
  encoding?: "base64" | "quoted-printable";
  lines: readonly string[];
}

export interface Report {
  /** Header lines that replace the usual ones of the same name. */
  headers?: readonly string[];
  /** Content-Type without its boundary. */
  report?: string;
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
export function reportMail({ headers = [], report = REPORT, parts, cut }: Report): Buffer {
  const named = new Set(headers.map(nameOf));
  const lines = [
    ...headers,
    ...USUAL.filter((line) => !named.has(nameOf(line))),
    "MIME-Version: 1.0",
    `Content-Type: ${report}; boundary="=b="`,
    "",
    ...parts.flatMap(partLines),
    "--=b=--",
    "",
  ];
  const text = lines.join("\r\n");
  return Buffer.from(cut === undefined ? text : text.slice(0, text.indexOf(cut)), "utf8");
}

const REPORT = "multipart/report; report-type=delivery-status";

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
