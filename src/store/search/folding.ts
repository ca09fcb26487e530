import { isAsciiText } from "../../core/ascii.ts";

/**
 * Which letters a text that is looked for has in common with others: one rule for all lists. Case does not count, nor how
 * Unicode spells an accent, whose i has a dot (`istanbul`, `İstanbul`) and whether `ß` or `ss` is written.
 */

/** Letters that are one where case does not count, though no change of case leads from each to each. The first stands for all. */
const KIN = [
  ...["iIıİ", "kK\u212a", "sSſ", "åÅ\u212b", "ṡṠẛ"],
  ...["βΒϐ", "εΕϵ", "θΘϑϴ", "ιΙ\u1fbe", "κΚϰ", "μΜµ", "πΠϖ", "ρΡϱ", "σΣς", "φΦϕ", "ωΩ\u2126"],
  ...["вВ\u1c80", "дД\u1c81", "оО\u1c82", "сС\u1c83", "тТ\u1c84\u1c85", "ъЪ\u1c86", "ѣѢ\u1c87", "ꙋꙊ\u1c88"],
  // Capitals with an iota, of which another case makes two letters.
  ...["ᾀᾈ ᾁᾉ ᾂᾊ ᾃᾋ ᾄᾌ ᾅᾍ ᾆᾎ ᾇᾏ ᾐᾘ ᾑᾙ ᾒᾚ ᾓᾛ ᾔᾜ ᾕᾝ", "ᾖᾞ ᾗᾟ ᾠᾨ ᾡᾩ ᾢᾪ ᾣᾫ ᾤᾬ ᾥᾭ ᾦᾮ ᾧᾯ ᾳᾼ ῃῌ ῳῼ"].flatMap(
    (pairs) => pairs.split(" "),
  ),
  // Two letters in one, which have a form of their own at the beginning of a name.
  ...["ǆǄǅ", "ǉǇǈ", "ǌǊǋ", "ǳǱǲ"],
];

/** Letters that another case writes with several, by what these are in lower case. */
export const WRITTEN_OUT: Readonly<Record<string, string>> = {
  ...{ ß: "ss", ẞ: "ss", ﬀ: "ff", ﬁ: "fi", ﬂ: "fl", ﬃ: "ffi", ﬄ: "ffl", ﬅ: "st", ﬆ: "st" },
};

/** An i with a dot of its own: what `İ` is in lower case. In the one form of it that Unicode has, an i has a dot anyway. */
const DOTTED = /([iI])\u0307/g;

/** What of a text in lower case is not spelled out. */
const NOT_SPELLED_OUT = new RegExp(
  `i\u0307|[${Object.keys(WRITTEN_OUT).join("")}${KIN.map((letters) => letters.slice(1)).join("")}]`,
  "g",
);

/** Below U+0300, where combining marks begin, every text is in its normal form. */
const BEYOND_LATIN = /[^\0-\u02ff]/;

const KIN_OF = new Map(KIN.flatMap((letters) => Array.from(letters, (letter) => [letter, letters] as const)));

/** The letters that are one with this one beside its own cases; the first stands for all. */
export function kinOf(letter: string): string | undefined {
  return KIN_OF.get(letter);
}

/** The text with one letter for all its kin, and those that another case writes with several as they are then. */
export function spelledOut(text: string): string {
  return Array.from(text.replace(DOTTED, "$1"), (char) => WRITTEN_OUT[char] ?? kinOf(char)?.[0] ?? char).join(
    "",
  );
}

/** A text as it is compared: what contains another so contains it for whoever looks for it. */
export function fold(text: string): string {
  if (isAsciiText(text)) return text.toLowerCase();
  const cased = foldCase(text);
  const spelled = cased.replace(NOT_SPELLED_OUT, spelledOut);
  // An i that has lost its dot may have another accent, which belongs to it.
  return spelled === cased ? cased : spelled.normalize("NFC");
}

/** A text whose case and spelling of accents do not count, while all its letters do: an address, a tag. */
export function foldCase(text: string): string {
  return (BEYOND_LATIN.test(text) ? text.normalize("NFC") : text).toLowerCase();
}
