/** Characters of a line that are waited for; a longer one is read in parts, and marks of quoting beyond are its text. */
export const MAX_FLOWED_LINE_CHARS = 64 * 1024;
/** The end of a line that its parts leave: more than a signature's line, which is told by all of it. */
const LINE_END_CHARS = 16;

/**
 * Reads text of format=flowed (RFC 3676 §4) a piece at a time: a line that ends in a space goes on in the next one, if
 * that is quoted as deeply. So an answer below a quoted line stays a line of its own.
 * @param deleteSpace whether the space goes (DelSp)
 */
export function* unflowed(pieces: Iterable<string>, deleteSpace: boolean): Generator<string> {
  const read = lineReader(deleteSpace);
  let rest = "";
  for (const piece of pieces) {
    const end = piece.lastIndexOf("\n");
    if (end < 0) {
      rest += piece;
      if (rest.length <= MAX_FLOWED_LINE_CHARS) continue;
      yield read(rest.slice(0, -LINE_END_CHARS), false);
      rest = rest.slice(-LINE_END_CHARS);
      continue;
    }
    const lines = `${rest}${piece.slice(0, end)}`.split("\n");
    rest = piece.slice(end + 1);
    yield lines.map((line) => read(line.endsWith("\r") ? line.slice(0, -1) : line, true)).join("");
  }
  yield read(rest, true);
}

/** What each line, or each part of a long one, adds to the text. */
function lineReader(deleteSpace: boolean): (raw: string, ends: boolean) => string {
  let first = true;
  let within = false;
  let goesOn = false;
  let depth = 0;
  /** Whether the line is quoted, and no text stands behind the marks yet. */
  let bare = false;
  const begin = (raw: string): { mark: string; line: string } => {
    const quotes = quoteDepth(raw);
    const line = raw.slice(raw.charCodeAt(quotes) === SPACE ? quotes + 1 : quotes);
    const begins = !goesOn || quotes !== depth || line === SIGNATURE;
    const mark = begins ? `${first ? "" : "\n"}${quotes === 0 ? "" : ">".repeat(quotes)}` : "";
    if (begins) bare = quotes > 0;
    first = false;
    depth = quotes;
    return { mark, line };
  };
  return (raw, ends) => {
    const { mark, line } = within ? { mark: "", line: raw } : begin(raw);
    within = !ends;
    goesOn = ends && line.endsWith(" ") && line !== SIGNATURE;
    const text = goesOn && deleteSpace ? line.slice(0, -1) : line;
    if (text === "" || !bare) return `${mark}${text}`;
    bare = false;
    return `${mark} ${text}`;
  };
}

const [SPACE, QUOTE] = [0x20, 0x3e];
const SIGNATURE = "-- ";

function quoteDepth(line: string): number {
  let depth = 0;
  while (line.charCodeAt(depth) === QUOTE) depth++;
  return depth;
}
