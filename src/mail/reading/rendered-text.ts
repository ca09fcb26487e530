import { slices } from "./mail-text.ts";
import { openReader, type TextKind } from "../decoding/mime-part.ts";

/**
 * Characters of html, over all parts, whose text is added to the message's own text. Making it takes up to 26 octets
 * of memory for each. The message's html shows all of them.
 */
export const MAX_HTML_READ_CHARS = 1024 * 1024;
/**
 * Characters of html, over all parts, that are made of text and added to the message's own html. Even the largest
 * body of words becomes less. A body of markup characters would grow sevenfold; the message's plain text shows all
 * of it.
 */
export const MAX_HTML_MADE_CHARS = 32 * 1024 * 1024;

/** The characters of html that may still be read or made. */
export interface Room {
  chars: number;
}

/** Returns the room for a message's bodies of that kind. */
export function roomFor(kind: TextKind): Room {
  return { chars: kind === "html" ? MAX_HTML_MADE_CHARS : MAX_HTML_READ_CHARS };
}

/**
 * Returns a body in the other kind, as the MIME reader renders it. If a message has parts of both kinds, each kind
 * shows them all. Text without room is left out.
 */
export function rendered(text: () => Iterable<string>, as: TextKind): (room: Room) => Iterable<string> {
  if (as === "html") return (room) => asHtml(text(), room);
  // It is made as a whole, and only once, because it takes long. A later reader of the bodies finds equal room.
  let made: { text: string; chars: number } | null = null;
  return (room) => {
    made ??= asText(text(), room.chars);
    room.chars -= made.chars;
    return slices(made.text);
  };
}

/**
 * Returns the text of at most `maxChars` characters of HTML, and their number. A tag or a character that the limit
 * cuts in two is left out.
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
  const reader = openReader();
  reader.textMap.set(reader.root, { [OTHER[as]]: [{ type: "text", value }] });
  for (const kind of [OTHER[as], as]) reader.textTypes.add(kind);
  reader.renderTextContent();
  return reader.textContent[as] ?? "";
}

/** A character that html leaves unchanged, and no white space. */
const EDGE = "|";
/**
 * Characters that html changes. The first is one that other replacements contain; the last is one whose html contains
 * others.
 */
const MARKED = ["&", "<", ">", '"', "'", "?", "\n"];

/**
 * Yields html piece by piece, because each character becomes html by itself. White space around the text is removed.
 * The reader renders each of those characters once: a long text of them would take it half a second per MiB.
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
    const html = marks.reduce((text, [character, shown]) => text.replaceAll(character, shown), piece);
    // After the end nothing may follow, even if it would fit.
    if (html.length > room.chars) {
      room.chars = 0;
      break;
    }
    room.chars -= html.length;
    yield html;
  }
  yield end;
}

/** Yields the pieces without the white space around them. */
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
