/**
 * Maximum characters of a line that are held back. A longer line is read in parts; quote marks beyond this are
 * text.
 */
export const MAX_FLOWED_LINE_CHARS = 64 * 1024;
/** Characters kept from the end of a line read in parts: more than a signature's line, which must be compared whole. */
const LINE_END_CHARS = 16;

/**
 * Reads text of format=flowed (RFC 3676 §4) piece by piece. A line that ends in a space continues in the next one if
 * both are quoted equally deep. So a reply below a quoted line stays a separate line.
 * @param deleteSpace whether that space is removed (DelSp)
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

/** Returns a function that gives the text of each line, or of each part of a long one. */
function lineReader(deleteSpace: boolean): (raw: string, ends: boolean) => string {
  let first = true;
  let within = false;
  let continues = false;
  let depth = 0;
  /** Set if the line is quoted and no text follows its marks yet. */
  let bare = false;
  const begin = (raw: string): { mark: string; line: string } => {
    const quotes = quoteDepth(raw);
    const line = raw.slice(raw.charCodeAt(quotes) === SPACE ? quotes + 1 : quotes);
    const begins = !continues || quotes !== depth || line === SIGNATURE;
    const mark = begins ? `${first ? "" : "\n"}${quotes === 0 ? "" : ">".repeat(quotes)}` : "";
    if (begins) bare = quotes > 0;
    first = false;
    depth = quotes;
    return { mark, line };
  };
  return (raw, ends) => {
    const { mark, line } = within ? { mark: "", line: raw } : begin(raw);
    within = !ends;
    continues = ends && line.endsWith(" ") && line !== SIGNATURE;
    const text = continues && deleteSpace ? line.slice(0, -1) : line;
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
