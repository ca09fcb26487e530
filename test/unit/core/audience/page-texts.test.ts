import { confirmationTexts, languageOf } from "../../../../src/core/audience/confirmation-texts.ts";
import { expect, test } from "bun:test";
import { languageFor, PAGE_LANGUAGES, pageTexts } from "../../../../src/core/audience/page-texts.ts";

test("each of the 12 languages has all words of the page, and no two buttons with the same words", () => {
  expect(PAGE_LANGUAGES).toHaveLength(12);
  for (const language of PAGE_LANGUAGES) {
    const { leave, join, leaveAll, joinAll, ...rest } = pageTexts(language);
    const words = [leave, join, leaveAll, joinAll, ...Object.values(rest)];
    expect(
      words.filter((text) => text === "" || /[<>&"]/.test(text)),
      language,
    ).toEqual([]);
    expect(new Set([leave, join, leaveAll, joinAll]).size, language).toBe(4);
  }
});

const rows: [string | null, string][] = [
  [null, "en"],
  ["", "en"],
  ["de", "de"],
  ["de-AT", "de"],
  ["DE-at", "de"],
  ["zh-Hant-TW", "zh"],
  ["tlh, fr;q=0.8, en;q=0.9", "en"],
  ["fr;q=0.8, de", "de"],
  ["de;q=0, it;q=0.1", "it"],
  ["*", "en"],
  ["de;q=x", "de"],
  [",".repeat(50_000), "en"],
  [`${"xx,".repeat(20)}de`, "en"],
];
test.each(rows)("a reader who accepts %.30p gets the page in %s", (accepted, language) => {
  expect(languageFor(accepted)).toBe(language as (typeof PAGE_LANGUAGES)[number]);
});

test.each(PAGE_LANGUAGES)("the message that asks to confirm in %s names project and days", (language) => {
  const { subject, asked, ends } = confirmationTexts(language);
  expect([subject.length > 3, asked.includes("{project}"), ends.includes("{days}")]).toEqual([
    true,
    true,
    true,
  ]);
});

test.each([
  ["of the property language", { language: "fr", locale: "de" }, "fr"],
  ["of a locale with a region", { locale: "pt_BR" }, "pt"],
  ["that we do not know", { language: "tlh" }, "en"],
  ["that is no string", { language: 7, locale: "sv" }, "sv"],
  ["that is not given", {}, "en"],
] as const)("the language of a contact %s", (_, properties, expected) => {
  expect(languageOf(properties as Record<string, string>)).toBe(expected);
});
