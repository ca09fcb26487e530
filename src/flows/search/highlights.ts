import { firstChars } from "../../core/text.ts";
import { placesOfPiece, type Range, type TextQuery } from "../../store/search/text-query.ts";
import { wordsIn } from "../../store/search/words.ts";
import type { MessageTexts } from "./texts.ts";

/** A part of a message with words that were searched for. */
export interface Highlight {
  field: "subject" | "body" | "fileName";
  /** Plain text on one line. */
  fragment: string;
  /** Where the words are in the fragment, in UTF-16 units. */
  ranges: { start: number; end: number }[];
}

/** Characters of a fragment, and those before its first word. */
export const FRAGMENT_CHARS = 200;
const LEAD_CHARS = 60;
/** Maximum number of fragments of the bodies, and of file names. */
const BODY_FRAGMENTS = 2;
const FILE_NAMES = 3;

/** Returns the parts of a message that show the searched words; null if it does not have all of them. */
export function highlightsOf(texts: MessageTexts, query: TextQuery): Highlight[] | null {
  const missing = new Set(query);
  const shown = (field: Highlight["field"], strings: readonly string[], most: number): Highlight[] => {
    const found: Highlight[] = [];
    for (const text of strings) {
      const ranges = rangesOf(text, query, missing);
      // The html shows mostly what the text says.
      if (ranges.length > 0 && found.length < most)
        found.push(
          ...fragmentsOf(text, ranges, field === "body" ? most : 1).map((one) => ({ field, ...one })),
        );
    }
    return found.slice(0, most);
  };
  const highlights = [
    ...shown("subject", [texts.subject], 1),
    ...shown("body", texts.bodies, BODY_FRAGMENTS),
    ...shown("fileName", texts.fileNames, FILE_NAMES),
  ];
  return missing.size > 0 ? null : highlights;
}

/** Returns where the pieces are in a string, in order and without overlaps, and takes those found from `missing`. */
function rangesOf(text: string, query: TextQuery, missing: Set<readonly string[]>): Range[] {
  const words = wordsIn(text);
  const ranges = query.flatMap((piece) => {
    const found = placesOfPiece(words, piece);
    if (found.length > 0) missing.delete(piece);
    return found;
  });
  const merged: Range[] = [];
  for (const range of ranges.sort((a, b) => a.from - b.from)) {
    const last = merged.at(-1);
    if (last !== undefined && range.from < last.to) last.to = Math.max(last.to, range.to);
    else merged.push({ ...range });
  }
  return merged;
}

function fragmentsOf(text: string, ranges: readonly Range[], most: number): Omit<Highlight, "field">[] {
  const fragments: Omit<Highlight, "field">[] = [];
  for (let at = 0; at < ranges.length && fragments.length < most; ) {
    const from = beginning(text, ranges[at]?.from ?? 0);
    const to = from + FRAGMENT_CHARS;
    const within = ranges.slice(at).filter((range) => range.to <= to);
    // A range that is longer than a fragment is shown up to its end.
    const shown = within.length > 0 ? within : [{ from: ranges[at]?.from ?? 0, to }];
    fragments.push({
      fragment: firstChars(text.slice(from), FRAGMENT_CHARS).replace(/\s/gu, " "),
      ranges: shown.map((range) => ({ start: range.from - from, end: range.to - from })),
    });
    at += shown.length;
  }
  return fragments;
}

/** Returns where a fragment begins: some words before the first found one. */
function beginning(text: string, at: number): number {
  const from = Math.max(0, at - LEAD_CHARS);
  if (from === 0) return 0;
  const space = text.slice(from, at).search(/\s/u);
  if (space >= 0) return from + space + 1;
  // Within a pair of surrogates.
  return /[\udc00-\udfff]/.test(text.charAt(from)) ? from + 1 : from;
}
