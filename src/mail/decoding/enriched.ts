/**
 * Maximum characters of a command that are held back: RFC 1896 limits its name to 60. A longer one is text.
 */
const MAX_COMMAND_CHARS = 64;
/** Commands whose content is no text: the values of another command, and notes of the old text/richtext (RFC 1341). */
const UNSHOWN = /^<(\/?)(?:param|comment)>$/i;
const UNFILLED = /^<(\/?)nofill>$/i;

/**
 * Reads text/enriched (RFC 1896) piece by piece as plain text. Commands are left out, `<<` is a `<`, one line end is a
 * space, and of several the first one goes. `nofill` keeps all of them.
 */
export function* unenriched(pieces: Iterable<string>): Generator<string> {
  let rest = "";
  const read = enrichedReader();
  for (const piece of pieces) {
    const text = rest + piece.replaceAll("\r", "");
    // A command or a run of line ends may continue in the next piece.
    const open = text.lastIndexOf("<");
    const cut = open >= 0 && text.length - open <= MAX_COMMAND_CHARS && !text.includes(">", open) ? open : -1;
    rest = cut < 0 ? "" : text.slice(cut);
    yield read(cut < 0 ? text : text.slice(0, cut));
  }
  yield read(rest);
}

/** Text, a command, an escaped bracket, or a run of line ends. */
const TOKENS = /<<|<\/?[a-z\d-]{1,60}>|\n+|[^<\n]+|</gi;

/** Returns a function that gives the text of each piece. */
function enrichedReader(): (enriched: string) => string {
  let unshown = 0;
  let unfilled = 0;
  const level = (depth: number, closes: string | undefined): number =>
    Math.max(0, closes === undefined ? depth : closes === "" ? depth + 1 : depth - 1);
  return (enriched) =>
    (enriched.match(TOKENS) ?? [])
      .map((token) => {
        if (/^<\/?[a-z\d]/i.test(token) && token.endsWith(">")) {
          unshown = level(unshown, UNSHOWN.exec(token)?.[1]);
          unfilled = level(unfilled, UNFILLED.exec(token)?.[1]);
          return /^<(?:nl|np)>$/i.test(token) ? "\n" : /^<lt>$/i.test(token) ? "<" : "";
        }
        if (unshown > 0) return "";
        if (token === "<<") return "<";
        if (!token.startsWith("\n") || unfilled > 0) return token;
        return token === "\n" ? " " : token.slice(1);
      })
      .join("");
}
