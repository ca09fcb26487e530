import { isAsciiText } from "../../core/text.ts";

/**
 * The rule for comparing strings in all lists: which letters count as one. Case does not count, nor how Unicode
 * spells an accent, nor the dot of an i (`istanbul`, `İstanbul`), nor whether `ß` or `ss` is written.
 */

/**
 * Letters that count as one if case is ignored, though no change of case leads from each to each. The first
 * represents all.
 */
const KIN = [
  "iIıİ",
  "kK\u212a",
  "sSſ",
  "åÅ\u212b",
  "ṡṠẛ",
  "βΒϐ",
  "εΕϵ",
  "θΘϑϴ",
  "ιΙ\u1fbe",
  "κΚϰ",
  "μΜµ",
  "πΠϖ",
  "ρΡϱ",
  "σΣς",
  "φΦϕ",
  "ωΩ\u2126",
  "вВ\u1c80",
  "дД\u1c81",
  "оО\u1c82",
  "сС\u1c83",
  "тТ\u1c84\u1c85",
  "ъЪ\u1c86",
  "ѣѢ\u1c87",
  "ꙋꙊ\u1c88",
  // Capitals with an iota: another case makes two letters of them.
  ...["ᾀᾈ ᾁᾉ ᾂᾊ ᾃᾋ ᾄᾌ ᾅᾍ ᾆᾎ ᾇᾏ ᾐᾘ ᾑᾙ ᾒᾚ ᾓᾛ ᾔᾜ ᾕᾝ", "ᾖᾞ ᾗᾟ ᾠᾨ ᾡᾩ ᾢᾪ ᾣᾫ ᾤᾬ ᾥᾭ ᾦᾮ ᾧᾯ ᾳᾼ ῃῌ ῳῼ"].flatMap(
    (pairs) => pairs.split(" "),
  ),
  // Two letters in one, with a separate form at the beginning of a name.
  "ǆǄǅ",
  "ǉǇǈ",
  "ǌǊǋ",
  "ǳǱǲ",
];

/** Letters that another case writes with several letters, with these in lower case. */
export const WRITTEN_OUT: Readonly<Record<string, string>> = {
  ß: "ss",
  ẞ: "ss",
  ﬀ: "ff",
  ﬁ: "fi",
  ﬂ: "fl",
  ﬃ: "ffi",
  ﬄ: "ffl",
  ﬅ: "st",
  ﬆ: "st",
};

/** An i with a combining dot: the lower case of `İ`. An i has a dot anyway. */
const DOTTED = /([iI])\u0307/g;

/** The characters of a lower-case string that `spelledOut` replaces. */
const NOT_SPELLED_OUT = new RegExp(
  `i\u0307|[${Object.keys(WRITTEN_OUT).join("")}${KIN.map((letters) => letters.slice(1)).join("")}]`,
  "g",
);

/** Combining marks begin at U+0300: every text below that is in its normal form. */
const BEYOND_LATIN = /[^\0-\u02ff]/;

const KIN_OF = new Map(KIN.flatMap((letters) => Array.from(letters, (letter) => [letter, letters] as const)));

/** Returns the letters that count as one with a letter, apart from its own cases; the first represents all. */
export function kinOf(letter: string): string | undefined {
  return KIN_OF.get(letter);
}

/** Returns the text with one letter for all that count as one, and with letters written out. */
export function spelledOut(text: string): string {
  return Array.from(text.replace(DOTTED, "$1"), (char) => WRITTEN_OUT[char] ?? kinOf(char)?.[0] ?? char).join(
    "",
  );
}

/** Returns a string as it is compared. If one string contains another, so do their folded forms. */
export function fold(text: string): string {
  if (isAsciiText(text)) return text.toLowerCase();
  const cased = foldCase(text);
  const spelled = cased.replace(NOT_SPELLED_OUT, spelledOut);
  // An i that has lost its dot may have another accent, which then combines with it.
  return spelled === cased ? cased : spelled.normalize("NFC");
}

/**
 * Returns a string without its case and spelling of accents, while all its letters count. It is for addresses and
 * tags.
 */
export function foldCase(text: string): string {
  return (BEYOND_LATIN.test(text) ? text.normalize("NFC") : text).toLowerCase();
}
