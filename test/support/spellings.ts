import type { Chance } from "./chance.ts";

/** Letters by what they are compared as, each with its spellings. */
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

/** A text as the letters that it is compared by. */
export type Letters = readonly number[];

/** Letters by chance. */
export function lettersBy(chance: Chance, count: number): Letters {
  return Array.from({ length: count }, () => chance.below(LETTERS.length));
}

/** They spelled by chance, in one of the two ways of Unicode to write accents. */
export function spelledBy(chance: Chance, letters: Letters): string {
  const text = letters.map((letter) => chance.pick(LETTERS[letter]?.[1] ?? [""])).join("");
  return text.normalize(chance.pick(["NFC", "NFD"]));
}

/** What the letters are compared as: one text stands in another where this does. */
export function comparedAs(letters: Letters): string {
  return letters.map((letter) => LETTERS[letter]?.[0] ?? "").join("");
}
