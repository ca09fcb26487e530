import type { Chance } from "./chance.ts";

/** Letters by their folded form, each with its spellings. */
const LETTERS: readonly [string, readonly [string, ...string[]]][] = [
  ["i", ["i", "I", "İ", "ı", "i\u0307", "I\u0307"]],
  ["ss", ["ß", "ẞ", "ss", "SS", "Ss", "ſs"]],
  ["é", ["é", "É", "e\u0301", "E\u0301"]],
  ["å", ["å", "Å", "\u212b", "A\u030a"]],
  ["ż", ["ż", "Z\u0307"]],
  ["σ", ["σ", "ς", "Σ"]],
  ["μ", ["μ", "µ", "Μ"]],
  ["k", ["k", "K", "\u212a"]],
  ["fi", ["fi", "FI", "ﬁ", "fİ"]],
  ["dž", ["dž", "Dž", "DŽ"].map((text) => text.normalize("NFC")) as [string, ...string[]]],
  ["t", ["t", "T"]],
  ["n", ["n", "N"]],
  ["本", ["本"]],
  [" ", [" "]],
];

/** A string as the folded letters that comparisons use. */
export type Letters = readonly number[];

/** Returns random letters. */
export function lettersBy(chance: Chance, count: number): Letters {
  return Array.from({ length: count }, () => chance.below(LETTERS.length));
}

/** Spells the letters at random, in one of the two Unicode ways to write accents. */
export function spelledBy(chance: Chance, letters: Letters): string {
  const text = letters.map((letter) => chance.pick(LETTERS[letter]?.[1] ?? [""])).join("");
  return text.normalize(chance.pick(["NFC", "NFD"]));
}

/** The folded form of the letters: if it occurs in another folded text, the comparison matches. */
export function comparedAs(letters: Letters): string {
  return letters.map((letter) => LETTERS[letter]?.[0] ?? "").join("");
}
