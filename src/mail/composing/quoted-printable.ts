import { encode, wrap } from "nodemailer/lib/qp";

/** RFC 2045 §6.7 (5): lines have at most 76 characters; two are kept for an "F" that is escaped, one for the "=". */
const LINE_CHARS = 73;

const BEYOND_PRINTABLE = /[^\t\r\n\x20-\x7e]/;
/** What even plain text cannot stand as in quoted-printable: the sign itself, and space that ends a line. */
const ESCAPED = /=|[\t ](?=[\r\n]|$)/g;
const ESCAPES: Readonly<Record<string, string>> = { "=": "=3D", " ": "=20", "\t": "=09" };

/** Content in quoted-printable. Its line ends are CRLF. */
export function quotedPrintable(content: string | Buffer): string {
  const isPlain = typeof content === "string" && !BEYOND_PRINTABLE.test(content);
  const lines = wrapped(
    isPlain ? content.replace(ESCAPED, (char) => ESCAPES[char] ?? char) : encode(content),
  );
  // A "From " that begins a line is escaped: an mbox on the way would put ">" before it and break the signature.
  return lines.includes("From ") ? lines.replace(/^From /gm, "=46rom ") : lines;
}

/** Wraps the lines that are too long; most are not, and the library looks at each for long. */
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
