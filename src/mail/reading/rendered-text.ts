import PostalMime from "postal-mime";
import { slices } from "./mail-text.ts";
import type { Reader, TextKind } from "./mime-part.ts";

/**
 * Characters of html, over all parts of a mail, whose text stands beside the mail's own: to make it takes up to 26 octets
 * of memory for each of them. The mail's html shows them all.
 */
export const MAX_HTML_READ_CHARS = 1024 * 1024;
/**
 * Characters of html, over all parts of a mail, that stand beside the mail's own and are made of its text: more than the
 * largest text of words becomes. One of marks alone would become seven times as long. The mail's text shows all of it.
 */
export const MAX_HTML_MADE_CHARS = 32 * 1024 * 1024;

/** How much html may still be read or made. */
export interface Room {
  chars: number;
}

/** Room for what a mail shows as that kind of text. */
export function roomFor(kind: TextKind): Room {
  return { chars: kind === "html" ? MAX_HTML_MADE_CHARS : MAX_HTML_READ_CHARS };
}

/**
 * A text as the MIME reader renders it as the other kind: where a mail shows parts of both, each kind shows them all. What
 * there is no room for is left out.
 */
export function rendered(text: () => Iterable<string>, as: TextKind): (room: Room) => Iterable<string> {
  if (as === "html") return (room) => asHtml(text(), room);
  // Made as a whole, and only once: it takes long. Whoever reads the texts again finds the same room.
  let made: { text: string; chars: number } | null = null;
  return (room) => {
    made ??= asText(text(), room.chars);
    room.chars -= made.chars;
    return slices(made.text);
  };
}

/**
 * The text of so many characters of an html, and how many it has of them. A tag, or a character of two units, that they
 * cut in two is none of it.
 */
function asText(html: Iterable<string>, maxChars: number): { text: string; chars: number } {
  let read = "";
  for (const piece of maxChars === 0 ? [] : html) {
    read += piece;
    if (read.length > maxChars) break;
  }
  if (read.length <= maxChars) return { text: render(read, "plain"), chars: read.length };
  const kept = read.slice(0, maxChars).replace(/[\ud800-\udbff]$/, "");
  const tag = kept.lastIndexOf("<");
  const end = tag > kept.lastIndexOf(">") ? tag : kept.length;
  return { text: render(kept.slice(0, end), "plain"), chars: maxChars };
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
/** Those that are not the same: first the one that others become html with, last the one whose html has others. */
const MARKED = ["&", "<", ">", '"', "'", "?", "\n"];

/**
 * Piece by piece, as each of its characters becomes html by itself; the white space around the text goes. The reader is
 * asked for each of those characters once: a text of nothing else would keep it busy for half a second a MiB.
 */
function* asHtml(text: Iterable<string>, room: Room): Generator<string> {
  const [begin = "", end = ""] = render(EDGE, "html").split(EDGE);
  const inside = begin.length + EDGE.length;
  const marks = MARKED.map((character) => {
    const html = render(`${EDGE}${character}${EDGE}`, "html");
    return [character, html.slice(inside, -(end.length + EDGE.length))] as const;
  });
  yield begin;
  for (const piece of trimmed(text)) {
    // One after another they take half as long as all at once.
    const html = marks.reduce((said, [character, shown]) => said.replaceAll(character, shown), piece);
    // Where it ends it ends for good: nothing of what follows is to stand there in its place.
    if (html.length > room.chars) {
      room.chars = 0;
      break;
    }
    room.chars -= html.length;
    yield html;
  }
  yield end;
}

/** A text without the white space around it. */
function* trimmed(pieces: Iterable<string>): Generator<string> {
  const space: string[] = [];
  let begun = false;
  for (const piece of pieces) {
    const kept = begun ? piece : piece.trimStart();
    const shown = kept.trimEnd();
    if (shown !== "") {
      yield* space.splice(0);
      yield shown;
      begun = true;
    }
    if (begun && shown.length < kept.length) space.push(kept.slice(shown.length));
  }
}
