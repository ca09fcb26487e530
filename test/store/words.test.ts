import { expect, test } from "bun:test";
import { MAX_WORD_UNITS, wordsIn } from "../../src/store/search/words.ts";

const TEXTS: readonly [name: string, text: string, words: string][] = [
  ["English", "The Invoice, don't lose it.", "the invoice don lose it"],
  ["accents, as one character or two", "Café café Ünïted", "cafe cafe united"],
  ["a dotted and a dotless i", "İstanbul ıstanbul", "istanbul istanbul"],
  ["letters that are written out", "Straße STRASSE ﬁne", "strasse strasse fine"],
  ["Greek", "ΟΔΟΣ οδός", "οδοσ οδοσ"],
  ["Russian", "Ёлка елка", "елка елка"],
  ["Arabic with vowel points and a stretched word", "مُحَمَّد مـحمد", "محمد محمد"],
  ["Hebrew with points", "שָׁלוֹם שלום", "שלום שלום"],
  ["Hindi, whose vowel signs are letters of the word", "हिन्दी", "हिन्दी"],
  ["Japanese in pairs", "請求書です。", "請求 求書 書で です"],
  ["voiced kana, which are other letters", "カード カート", "カー ード カー ート"],
  ["kana of half width and with separate marks", "ｶﾞｲﾄﾞ か\u3099く", "ガイ イド がく"],
  ["Chinese characters of two units", "𠮷野家", "𠮷野 野家"],
  ["Korean, composed or in parts", "학교에서 \u1112\u1161\u11ab국", "학교 교에 에서 한국"],
  ["Thai in pairs", "สวัสดี", "สว วั ัส สด ดี"],
  ["scripts that touch", "Vue3の使い方", "vue3 の使 使い い方"],
  ["Latin letters of full width", "ＡＢＣ１２３", "abc123"],
  ["numbers", "1,234.56 INV-2026/117", "234 56 inv 2026 117"],
  ["e-mail addresses", "ana.ruiz+news@bücher.example", "ana ruiz news bucher example"],
  ["URLs", "https://shop.example/o/12?id=a_bc", "https shop example 12 id bc"],
  ["emoji, which are no words", "🎉 done 👍🏽", "done"],
  ["single letters and characters, which are too short", "a 5 の b", ""],
  ["half of a surrogate pair", "ab\ud83dcd", "ab cd"],
  ["nothing", "", ""],
];
test.each(TEXTS)("words of %s", (_name, text, words) => {
  expect(
    wordsIn(text)
      .map(({ word }) => word)
      .join(" "),
  ).toBe(words);
});

test("a word says where it is in its text", () => {
  const text = "Über 請求書 ｶﾞｲﾄﾞ か\u3099く";
  const shown = wordsIn(text).map(({ word, from, to }) => `${word}:${text.slice(from, to)}`);
  expect(shown.join(" ")).toBe("uber:Über 請求:請求 求書:求書 ガイ:ｶﾞｲ イド:ｲﾄﾞ がく:か\u3099く");
});

test("a word of 64 letters is found, one of 65 is none", () => {
  const longest = "x".repeat(MAX_WORD_UNITS);
  expect(wordsIn(`${longest} ${longest}y`).map(({ word }) => word)).toEqual([longest]);
});
