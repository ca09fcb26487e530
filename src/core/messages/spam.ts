import { isObject } from "../validation.ts";

/** A rule of the spam filter that a message met, and its points. */
export interface SpamSymbol {
  name: string;
  score: number;
}

/** The verdict of the spam filter. */
export interface Spam {
  score: number;
  /** Points from which the filter takes a message for spam. */
  required: number;
  /** The filter's advice, such as `no action`, `add header` or `reject`. */
  action: string;
  /** The heaviest first. */
  symbols: SpamSymbol[];
}

/** The fate of a message for which the filter fails: the service takes it without a verdict, or asks its sender to try again. */
export const SPAM_CHECK_FAIL = ["accept", "defer"] as const;
export type SpamCheckFail = (typeof SPAM_CHECK_FAIL)[number];

/** Advice of rspamd that takes a message for spam. `greylist` and `soft reject` only ask for patience. */
const SPAM_ACTIONS: ReadonlySet<string> = new Set([
  "add header",
  "rewrite subject",
  "quarantine",
  "discard",
  "reject",
]);

/** Returns whether the filter takes the message for spam. */
export function isSpam({ score, required, action }: Spam): boolean {
  return SPAM_ACTIONS.has(action) || score >= required;
}

/** Maximum number of symbols kept: those with the most points, whichever their sign. */
export const MAX_SPAM_SYMBOLS = 50;
/** Maximum characters of a symbol's name and of an action. Longer ones are cut. */
export const MAX_SPAM_NAME_CHARS = 64;

/** Reads the body of an answer to rspamd's `/checkv2`; null if it is none. Options of symbols are left out, because they quote the message. */
export function readSpam(body: Uint8Array): Spam | null {
  const answer = parsed(body);
  if (!isObject(answer)) return null;
  const { score, required_score: required, action, symbols } = answer;
  if (!isPoints(score) || !isPoints(required) || typeof action !== "string") return null;
  return {
    score,
    required,
    action: action.slice(0, MAX_SPAM_NAME_CHARS),
    symbols: isObject(symbols) ? heaviest(symbols) : [],
  };
}

function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    return null;
  }
}

function isPoints(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

function heaviest(symbols: Readonly<Record<string, unknown>>): SpamSymbol[] {
  return Object.entries(symbols)
    .flatMap(([name, symbol]): SpamSymbol[] =>
      isObject(symbol) && isPoints(symbol.score)
        ? [{ name: name.slice(0, MAX_SPAM_NAME_CHARS), score: symbol.score }]
        : [],
    )
    .sort((a, b) => Math.abs(b.score) - Math.abs(a.score))
    .slice(0, MAX_SPAM_SYMBOLS);
}
