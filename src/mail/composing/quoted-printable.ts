import { encode, wrap } from "nodemailer/lib/qp";
import { isPlainAscii } from "./text-entry.ts";

/** Characters of a line. RFC 2045 §6.7 (5) allows 76: two are kept for an escaped "F", one for the "=". */
const LINE_CHARS = 73;

/** Space at the end of a line, which must be escaped even in plain text. */
const ENDING_SPACE = /[\t ](?=\r|$)/g;

/** Returns content in quoted-printable. Its line ends are CRLF. */
export function quotedPrintable(content: string | Buffer): string {
  const isPlain = typeof content === "string" && isPlainAscii(content);
  const lines = wrapped(isPlain ? escaped(content) : encode(content));
  // A "From " at the start of a line is escaped: an mbox on the way would put ">" before it and break the signature.
  return lines.includes("From ") ? lines.replace(/^From /gm, "=46rom ") : lines;
}

/** Returns plain text with the escape sign itself escaped, and the rare space before the end of a line. */
function escaped(content: string): string {
  const text = content.replaceAll("=", "=3D");
  const hasEndingSpace =
    text.includes(" \r") || text.includes("\t\r") || text.endsWith(" ") || text.endsWith("\t");
  return hasEndingSpace ? text.replace(ENDING_SPACE, (space) => (space === " " ? "=20" : "=09")) : text;
}

/** Wraps the lines that are too long. Few lines are, and the library would take long for every one. */
function wrapped(text: string): string {
  let out = "";
  let kept = 0;
  for (let start = 0; start < text.length; ) {
    const lineEnd = text.indexOf("\n", start);
    const end = lineEnd < 0 ? text.length : lineEnd + 1;
    if (end - start > LINE_CHARS) {
      out += text.slice(kept, start) + wrap(text.slice(start, end), LINE_CHARS);
      kept = end;
    }
    start = end;
  }
  return kept === 0 ? text : out + text.slice(kept);
}
