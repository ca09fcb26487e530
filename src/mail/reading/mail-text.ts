import { decoderAsRead, decoderFor, decoderNamed } from "../decoding/charsets.ts";
import { unenriched } from "../decoding/enriched.ts";
import { unflowed } from "../decoding/flowed.ts";
import type { MimePart } from "../decoding/mime-part.ts";
import { MAX_HTML_CHARS } from "../text/preview.ts";
import type { Decoder } from "../decoding/rare-charsets.ts";
import { MAX_REPLY_CHARS } from "../text/reply-text.ts";
import { storedText } from "../text/stored-text.ts";

/** Characters of a body that are read first, and one more that shows whether it continues. */
export const BEGINNING_CHARS = Math.max(MAX_REPLY_CHARS, MAX_HTML_CHARS) + 1;
/** Characters of a piece of text that was made as a whole. */
const PIECE_CHARS = 64 * 1024;

/** A body of a message. A large one is decoded piece by piece on each request. */
export interface MailText {
  /** The first characters, enough for previews and replies. If they are blank, also the first visible character. */
  beginning: string;
  /** Set if that is the whole text. */
  whole: boolean;
  pieces: () => Iterable<string>;
}

/** The whole text. */
export function wholeText({ beginning, whole, pieces }: MailText): string {
  return whole ? beginning : [...pieces()].join("");
}

/** Returns the text made of those pieces, cleaned for storage. Null if they are empty. */
export function mailText(pieces: () => Iterable<string>): MailText | null {
  let beginning = "";
  let blank = true;
  let empty = true;
  const stored = (): Iterable<string> => storedPieces(pieces());
  const watched = function* (): Generator<string> {
    for (const piece of pieces()) {
      empty &&= piece === "";
      yield piece;
    }
  };
  for (const piece of storedPieces(watched())) {
    if (beginning.length < BEGINNING_CHARS) {
      beginning += piece;
      if (beginning.length < BEGINNING_CHARS) continue;
      beginning = beginning.slice(0, BEGINNING_CHARS);
      blank = beginning.trim() === "";
    }
    const shown = blank ? piece.trim() : "";
    if (shown !== "") beginning += shown.slice(0, 1);
    if (!blank || shown !== "") return { beginning, whole: false, pieces: stored };
  }
  // A body of only controls is a body, but nothing of it remains.
  if (empty) return null;
  const whole = beginning.length < BEGINNING_CHARS;
  return { beginning, whole, pieces: whole ? () => [beginning] : stored };
}

/**
 * Cleans the pieces as `storedText` would clean all of them together. Neither a line end nor a character is cut in
 * two.
 */
function* storedPieces(pieces: Iterable<string>): Generator<string> {
  let rest = "";
  for (const piece of pieces) {
    const text = rest + piece;
    const kept = /^[\r\ud800-\udbff]$/.test(text.slice(-1)) ? text.length - 1 : text.length;
    rest = text.slice(kept);
    yield storedText(text.slice(0, kept));
  }
  if (rest !== "") yield storedText(rest);
}

/** Yields the text of a text part. */
export function* partText(part: MimePart, content: Iterable<Uint8Array>): Generator<string> {
  const { charset = "", format, delsp } = part.contentType.parsed.params;
  const decoder = decoderNamed(charset || "utf-8") ?? decoderAsRead(charset);
  const pieces = decoded(decoder, content);
  if (part.isEnriched === true) return yield* unenriched(pieces);
  yield* /^flowed$/i.test(format ?? "") ? unflowed(pieces, /^yes$/i.test(delsp ?? "")) : pieces;
}

function* decoded(named: Decoder, content: Iterable<Uint8Array>): Generator<string> {
  let decoder: Decoder | null = null;
  for (const octets of content) {
    decoder ??= decoderFor(named, octets);
    yield decoder.decode(octets, { stream: true });
  }
  yield (decoder ?? named).decode();
}

/** Yields the pieces of a body that was made as a whole. */
export function* slices(text: string): Generator<string> {
  for (let at = 0; at < text.length; at += PIECE_CHARS) yield text.slice(at, at + PIECE_CHARS);
}
