import { invalid } from "../../core/errors.ts";
import { MAX_WORD_UNITS, type Word, wordsIn } from "./words.ts";

/** A searched text: a message must have each of the pieces. The words of a piece follow each other, as in an address. */
export type TextQuery = readonly (readonly string[])[];

/** Maximum number of words of a searched text, apart from those within an address or a number. */
export const MAX_PIECES = 10;

/** A part of a string, in UTF-16 units. */
export interface Range {
  from: number;
  to: number;
}

/**
 * Reads a searched text, which spaces divide into pieces.
 * @throws AppError 422 if it has no word, a word that is too long, or too many of them
 */
export function textQuery(text: string): TextQuery {
  const given = text.split(/\s+/u).map((piece) => ({ piece, words: wordsIn(piece).map(({ word }) => word) }));
  const long = given.find(({ piece, words }) => words.length === 0 && piece.length > MAX_WORD_UNITS);
  if (long !== undefined)
    throw invalid("text", `"text" has a word of more than ${MAX_WORD_UNITS} letters and digits.`);
  const pieces = given.flatMap(({ words }) => (words.length === 0 ? [] : [words]));
  if (pieces.length === 0)
    throw invalid("text", '"text" has no word to search for. A word has at least 2 letters or digits.');
  if (pieces.length > MAX_PIECES)
    throw invalid("text", `"text" has ${pieces.length} words. Search for at most ${MAX_PIECES}.`);
  return pieces;
}

/** Maximum number of places of a piece that are noted. */
export const MAX_PLACES = 20;

/** Returns where the words of a string have those of a piece, one after another. */
export function placesOfPiece(words: readonly Word[], piece: readonly string[]): Range[] {
  const found: Range[] = [];
  const last = words.length - piece.length;
  for (let at = 0; at <= last && found.length < MAX_PLACES; at++)
    if (piece.every((word, next) => words[at + next]?.word === word))
      found.push({ from: words[at]?.from ?? 0, to: words[at + piece.length - 1]?.to ?? 0 });
  return found;
}
