import PostalMime from "postal-mime";
import { slices } from "./mail-text.ts";
import type { Reader, TextKind } from "./mime-part.ts";

/** A text as the MIME reader renders it as the other kind: where a mail shows parts of both, each kind shows them all. */
export function rendered(text: () => Iterable<string>, as: TextKind): () => Iterable<string> {
  if (as === "html") return () => asHtml(text());
  // Made as a whole, and only once: of much html that takes seconds.
  let made: string | null = null;
  return () => {
    made ??= render([...text()].join(""), as);
    return slices(made);
  };
}

const OTHER: Readonly<Record<TextKind, TextKind>> = { plain: "html", html: "plain" };

function render(value: string, as: TextKind): string {
  // The reader's declarations leave its steps out.
  const reader = new PostalMime() as unknown as Reader;
  reader.textMap.set(reader.root, { [OTHER[as]]: [{ type: "text", value }] });
  for (const kind of [OTHER[as], as]) reader.textTypes.add(kind);
  reader.renderTextContent();
  return reader.textContent[as] ?? "";
}

/** A character that is the same in html, and no white space. */
const EDGE = "|";
/** Those that are not the same. */
const MARKED = /[<>"'?&\n]/g;

/**
 * Piece by piece, as each of its characters becomes html by itself; the white space around the text goes. The reader is
 * asked for each of those characters once: a text of nothing else would keep it busy for half a second a MiB.
 */
function* asHtml(text: Iterable<string>): Generator<string> {
  const [begin = "", end = ""] = render(EDGE, "html").split(EDGE);
  const inside = begin.length + EDGE.length;
  const known = new Map<string, string>();
  const shownAs = (character: string): string => {
    const html =
      known.get(character) ??
      render(`${EDGE}${character}${EDGE}`, "html").slice(inside, -(end.length + EDGE.length));
    known.set(character, html);
    return html;
  };
  yield begin;
  let space = "";
  let begun = false;
  for (const piece of text) {
    const kept = begun ? piece : piece.trimStart();
    const shown = kept.trimEnd();
    if (shown !== "") {
      yield `${space}${shown}`.replace(MARKED, shownAs);
      space = "";
      begun = true;
    }
    if (begun) space += kept.slice(shown.length);
  }
  yield end;
}
