import { isAsciiText } from "../../core/text.ts";
import { fold } from "../matching/folding.ts";

/**
 * The rule for words in all scripts. A word is a run of letters and digits. Scripts without spaces have no such
 * runs, so there each two neighbouring characters are a word, as in Korean. A run contains another if it has its pairs one after
 * another. Case, accents, vowel points, and full or half width do not count.
 */

/** A word as it is compared, and where it is in its text, in UTF-16 units. */
export interface Word {
  word: string;
  from: number;
  to: number;
}

/** Maximum UTF-16 units of a word. A longer run, such as a key in base64, is none. */
export const MAX_WORD_UNITS = 64;
/** Characters of the shortest word. */
export const MIN_WORD_CHARS = 2;

/** Characters of scripts without spaces, and Korean, with the marks that belong to them. */
const PAIRED = String.raw`\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\u3099\u309a\u30fc\uff70\uff9e\uff9f`;
const RUN = new RegExp(String.raw`([${PAIRED}]+)|[[\p{L}\p{N}\p{M}]--[${PAIRED}]]+`, "gv");
const ASCII_RUN = /[A-Za-z0-9]+/g;
/** A character of a paired script with what follows and belongs to it: marks, and the other parts of a Korean syllable. */
const CHARACTER = /.[\p{M}\uff9e\uff9f\u1160-\u11ff]*/gsu;
/** Accents, vowel points of Hebrew and Arabic, and the stroke that stretches an Arabic word. Voiced kana keep their marks. */
const MARKS =
  /[[[\p{Script=Inherited}\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Cyrillic}]--[\u3099\u309a]]&&\p{Mn}]|\u0640/gv;

/** Returns the words of a string in their order. */
export function wordsIn(text: string): Word[] {
  const words: Word[] = [];
  const isAscii = isAsciiText(text);
  for (const match of text.matchAll(isAscii ? ASCII_RUN : RUN)) {
    const [run, paired] = match;
    const from = match.index;
    if (paired !== undefined) addPairs(words, run, from);
    else addWord(words, isAscii ? run.toLowerCase() : folded(run), from, run.length);
  }
  return words;
}

function addWord(words: Word[], word: string, from: number, units: number): void {
  if (word.length <= MAX_WORD_UNITS && isLongEnough(word)) words.push({ word, from, to: from + units });
}

function isLongEnough(word: string): boolean {
  return word.length > MIN_WORD_CHARS || Array.from(word).length >= MIN_WORD_CHARS;
}

/** Adds each pair of neighbours. */
function addPairs(words: Word[], run: string, from: number): void {
  let before: Word | null = null;
  for (const char of charactersOf(run, from)) {
    if (before !== null) words.push({ word: before.word + char.word, from: before.from, to: char.to });
    before = char;
  }
}

/** Returns the characters of a run as they are compared. If one is compared as several, all of them have its place. */
function charactersOf(run: string, from: number): Word[] {
  // Runs are nearly always as they are compared, and taking them apart takes several times as long.
  if (folded(run) === run) return asTheyAre(run, from);
  return Array.from(run.matchAll(CHARACTER)).flatMap(({ 0: char, index }) =>
    Array.from(folded(char), (word) => ({ word, from: from + index, to: from + index + char.length })),
  );
}

function asTheyAre(run: string, from: number): Word[] {
  let at = from;
  return Array.from(run, (word) => {
    const begin = at;
    at += word.length;
    return { word, from: begin, to: at };
  });
}

function folded(run: string): string {
  if (isAsciiText(run)) return run.toLowerCase();
  return fold(run.normalize("NFKD").replace(MARKS, "").normalize("NFC"));
}
