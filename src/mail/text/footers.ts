import {
  APP,
  CLOSED,
  DEVICE_NOUNS,
  DEVICES,
  EXCUSES,
  GLUE,
  MAKERS,
  MODEL,
  OWNERS,
  PROGRAMS,
  SENT_ELSEWHERE,
  SENT_FROM,
  SENT_WITH,
  WHOLE,
} from "./footer-words.ts";

/** Minimum and maximum characters of a line that may be a footer. */
const [MIN_FOOTER_CHARS, MAX_FOOTER_CHARS] = [8, 160];
/** Maximum characters of the part of a footer that names its program. */
const MAX_NAMED_CHARS = 90;
/** Maximum words of a footer in a language of which only the beginning is known. */
const MAX_ELSEWHERE_WORDS = 6;

/**
 * Returns whether a line is one that a device or a program adds below a message. Every word must be one that such lines
 * have, because a letter may say "Sent from the Outlook Hotel", too.
 */
export function isFooter(line: string): boolean {
  if (line.length < MIN_FOOTER_CHARS || line.length > MAX_FOOTER_CHARS) return false;
  const bare = withoutMarkup(line);
  if (WHOLE.some((pattern) => pattern.test(bare) || pattern.test(line.trim()))) return true;
  const [said = "", ...more] = bare.split(/(?<=[.!]) (?=\p{Lu})|(?<!verizon|at&t)[,;] |(?<=\w) - /iu);
  if (more.length > 0 && !isExcuse(more.join(" "))) return false;
  if (said.length > MAX_NAMED_CHARS) return false;
  const words = wordsOf(said);
  const from = SENT_FROM.exec(words);
  if (from !== null) return isNamed(words.slice(from[0].length), true);
  const given = SENT_WITH.exec(words);
  if (given !== null) return isNamed(words.slice(given[0].length), false);
  return SENT_ELSEWHERE.test(words) && isShort(words);
}

/** Returns the words of a line, without the addresses and brackets that programs put around and after them. */
function withoutMarkup(line: string): string {
  return line
    .replace(
      /\(?[<([] ?(?:https?:\/\/|www\.)[^<>()\s]{1,120} ?[>)\]]\)?|(?:\bhttps?:\/\/|\bwww\.)\S{1,120}$/g,
      "",
    )
    .replace(/[[\]*]/g, "")
    .replace(/^-- ?(?=\S)/, "")
    .trim();
}

/** Returns a line in one form: names of several words as one, and without punctuation. */
function wordsOf(said: string): string {
  return said
    .replace(APP, "MailApp")
    .replace(/(^|\s)[ld]['’]/gi, "$1")
    .replace(/[.,!:|()©®™]+(?=\s|$)|(?<=^|\s)[|(]+/g, "")
    .replace(/\s+/g, " ")
    .trim();
}

/** An excuse for brevity or an invitation to the program, without anything else. */
function isExcuse(text: string): boolean {
  return text.length <= MAX_NAMED_CHARS && EXCUSES.test(text) && !/\d/.test(text);
}

/** @param fromDevice whether a device alone is enough: who writes "with my phone" may have sent a telephone */
function isNamed(rest: string, fromDevice: boolean): boolean {
  const words = rest.trim().replace(CLOSED, "").trim().split(/[ /]/);
  const kinds = new Set(words.flatMap((word, at) => kindsOf(word, at > 0)));
  if (kinds.has("unknown")) return false;
  return (
    kinds.has("program") ||
    (fromDevice && (kinds.has("device") || (kinds.has("maker") && kinds.has("owner"))))
  );
}

type Kind = "program" | "device" | "maker" | "owner" | "other" | "unknown";
const KINDS: readonly (readonly [Kind, RegExp])[] = [
  ["program", PROGRAMS],
  ["device", DEVICES],
  ["device", DEVICE_NOUNS],
  ["maker", MAKERS],
  ["owner", OWNERS],
  ["other", GLUE],
];

/** Returns the kind of a word, or those of its parts if it has hyphens. */
function kindsOf(word: string, isLater: boolean): Kind[] {
  const known = KINDS.find(([, pattern]) => pattern.test(word));
  if (known !== undefined) return [known[0]];
  if (isLater && MODEL.test(word)) return ["other"];
  const parts = word.split("-");
  return parts.length === 1 ? ["unknown"] : parts.flatMap((part) => kindsOf(part, true));
}

function isShort(words: string): boolean {
  const split = words.split(/[ -]/);
  if (split.length > MAX_ELSEWHERE_WORDS || /\d/.test(words)) return false;
  return split.some((word) => PROGRAMS.test(word) || DEVICES.test(word) || DEVICE_NOUNS.test(word));
}
