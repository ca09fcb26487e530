import { MINUTE_MS } from "../../core/time/units.ts";
import effectsText from "./effects.txt" with { type: "text" };
import { namedWait } from "./named-wait.ts";
import { classifyReply, plainText, type Refusal, type ReplyClass } from "./reply-class.ts";
import { patternGroups, type ReplyCategory } from "./reply-phrases.ts";

/**
 * The effect of a refusal on everything that leaves for the same provider.
 * - `none`: the refusal is about one message or one recipient.
 * - `slow`: the provider gets more than it wants, so send less.
 * - `rest`: the provider wants nothing for a time.
 * - `block`: the provider refuses our address for good. Several in a row, without one acceptance, close the lane; a
 *   closed lane holds its messages instead of failing them.
 */
export type LaneEffect = "none" | "slow" | "rest" | "block";

/** The party that can change the outcome: the recipient, the sender (`you`), the operator (`us`) or the provider. */
export type ResponsibleParty = "recipient" | "you" | "us" | "provider";

/** The full reading of a refusal: its class, its subject, and what to do about it. */
export interface ReplyReading extends ReplyClass {
  who: ResponsibleParty;
  laneEffect: LaneEffect;
  /** Milliseconds before which another try makes no sense. Null if the refusal is final. */
  retryAfterMs: number | null;
  /**
   * Milliseconds until another try, as the reply names them. Null if it names none, or the refusal is final.
   */
  namedMs: number | null;
}

/** The demands of a refusal. `wait`: minutes. */
interface Effect {
  who: ResponsibleParty;
  lane: "none" | "slow" | "rest";
  wait: number;
}

/** The effect of each category if no row of `effects.txt` sets it. A wait of 0 leaves it to the retry schedule. */
const BY_CATEGORY: Readonly<Record<ReplyCategory, Effect>> = {
  recipient: { who: "recipient", lane: "none", wait: 0 },
  "mailbox-full": { who: "recipient", lane: "none", wait: 0 },
  policy: { who: "you", lane: "none", wait: 30 },
  reputation: { who: "us", lane: "rest", wait: 15 },
  authentication: { who: "you", lane: "none", wait: 60 },
  rate: { who: "us", lane: "slow", wait: 15 },
  greylist: { who: "provider", lane: "none", wait: 5 },
  content: { who: "you", lane: "none", wait: 0 },
  infrastructure: { who: "provider", lane: "none", wait: 0 },
  protocol: { who: "us", lane: "none", wait: 0 },
  other: { who: "provider", lane: "none", wait: 0 },
};

/** Categories whose replies name a time to wait. In others a number is about something else. */
const TIMED: ReadonlySet<ReplyCategory> = new Set<ReplyCategory>([
  ...(["rate", "greylist", "reputation", "infrastructure", "policy", "authentication", "other"] as const),
]);

/** Stages before the sender is named: only the host can be meant. */
const BEFORE_SENDER: ReadonlySet<string> = new Set(["connect", "ehlo"]);
/** The effect of a refusal at such a stage if its words give no reason. */
const OF_HOST: Readonly<Partial<Record<ReplyCategory, Partial<Effect>>>> = {
  policy: { who: "us", lane: "slow" },
  other: { who: "us" },
};

/** Reads a refusal: what it means for its message, for its provider's lane, and when to try again. */
export function readReply(refusal: Refusal): ReplyReading {
  const { outcome, category } = classifyReply(refusal);
  const plain = plainText(refusal.text);
  const ofHost = BEFORE_SENDER.has(refusal.stage ?? "");
  const { who, lane, wait } = {
    ...BY_CATEGORY[category],
    ...(ofHost ? OF_HOST[category] : {}),
    ...effectByText(category, `${refusal.code ?? ""} ${refusal.enhanced ?? ""} ${plain}`),
  };
  if (outcome !== "deferred") {
    const blocked =
      who === "us" && (lane === "rest" || (ofHost && category !== "policy" && category !== "other"));
    const laneEffect = blocked ? "block" : lane === "rest" ? "slow" : lane;
    return { outcome, category, who, laneEffect, retryAfterMs: null, namedMs: null };
  }
  return { outcome, category, who, laneEffect: lane, ...waitOf(category, wait * MINUTE_MS, plain) };
}

/** @param reply the codes and the text as `plainText` has it */
function effectByText(category: ReplyCategory, reply: string): Partial<Effect> {
  const found: Partial<Effect> = {};
  for (const { categories, sets, patterns } of effectRules())
    if (categories.has(category) && patterns.some((pattern) => pattern.test(reply)))
      Object.assign(found, { ...sets, ...found });
  return found;
}

/** Returns the wait of a deferral: the one that its text names, else at least the period of the limit it names. */
function waitOf(
  category: ReplyCategory,
  ownMs: number,
  plain: string,
): Pick<ReplyReading, "retryAfterMs" | "namedMs"> {
  const named = TIMED.has(category) ? namedWait(plain) : null;
  if (named?.exact === true) return { retryAfterMs: named.ms, namedMs: named.ms };
  return { retryAfterMs: Math.max(ownMs, named?.ms ?? 0), namedMs: null };
}

interface EffectRule {
  categories: ReadonlySet<string>;
  sets: Partial<Effect>;
  patterns: readonly RegExp[];
}

let rules: readonly EffectRule[] | null = null;

/** Returns the groups of `effects.txt`, which explains its form. */
export function effectRules(): readonly EffectRule[] {
  rules ??= patternGroups(effectsText).map(({ head, patterns }) => ({ ...ruleOf(head), patterns }));
  return rules;
}

/** Reads the first line of a group, such as `[rate reputation: lane=rest wait=60]`. */
function ruleOf(line: string): Omit<EffectRule, "patterns"> {
  const [, names, lane, who, wait] =
    /^\[([a-z -]+):(?: lane=(none|slow|rest))?(?: who=(recipient|you|us|provider))?(?: wait=(\d{1,4}))?\]$/.exec(
      line,
    ) ?? [];
  if (names === undefined) throw new Error(`effects.txt has an unknown line: ${line}`);
  const sets = {
    ...(lane === undefined ? {} : { lane: lane as Effect["lane"] }),
    ...(who === undefined ? {} : { who: who as ResponsibleParty }),
    ...(wait === undefined ? {} : { wait: Number(wait) }),
  };
  return { categories: new Set(names.split(" ")), sets };
}
