// The rule that decides when a DMARC policy is safe, for owners who move it by hand and for zones that move by themselves. The
// share of all mail that passes would be simpler, but a forger could move it either way.
import { DMARC_POLICIES, type DmarcPolicy } from "../../core/domains/dmarc-policies.ts";
import { DAY_MS } from "../../core/time/units.ts";
import type { SourceDay } from "../../store/domains/reports.ts";
import { utcDay } from "../../store/projects/usage.ts";

/** Days of reports that advice looks at. */
export const WINDOW_DAYS = 30;
/** Days without trouble, and days with reports among them, before each policy is safe. */
export const NEEDED: Readonly<Record<DmarcPolicy, { days: number; reported: number }>> = {
  none: { days: 0, reported: 0 },
  quarantine: { days: 14, reported: 7 },
  reject: { days: 28, reported: 14 },
};
/** Messages that the reports must cover. */
export const MIN_MESSAGES = 100;
/** Share of the passing mail from which on a source counts as one of the domain's main sources. */
export const MAIN_SHARE = 0.1;
/** Shares of the messages of main sources, and of all known sources, that may fail on one day. */
export const MAX_FAILED_SHARE = { main: 0.02, known: 0.5 } as const;
/** Number of failed messages from which on they are trouble. */
export const MIN_FAILED = 10;
/** Share of all messages that may come from unknown sources. */
export const MAX_UNKNOWN_SHARE = 0.05;
/** Maximum number of unknown sources in advice, those with the most messages first. */
export const MAX_UNKNOWN_SOURCES = 20;

/** Findings of reports about a domain's DMARC policy. */
export interface PolicyAdvice {
  /** The published policy. Null if there is none, or the DNS did not answer. */
  now: DmarcPolicy | null;
  /** The strictest policy that the reports show to be safe. */
  safe: DmarcPolicy;
  /** Begin of the days without trouble, milliseconds. Null without reports. */
  since: number | null;
  reasons: string[];
  unknownSources: { source: string; messages: number }[];
}

export interface AdviceQuestion {
  now: DmarcPolicy | null;
  /** Our addresses. Mail from them is known. */
  ownIps: readonly string[];
  /** Milliseconds. */
  at: number;
}

/**
 * Judges a domain by its reports. Trouble of known sources makes a strict policy unsafe at once. Unknown sources are forgers or
 * forgotten services, which reports cannot tell apart: they prevent a stricter policy, but never soften one, so that no forger can.
 */
export function advise(mail: readonly SourceDay[], { now, ownIps, at }: AdviceQuestion): PolicyAdvice {
  const current = now ?? "none";
  const { known, main, unknownSources } = sourcesOf(mail, ownIps);
  const trouble = later(troubleOf(main, MAX_FAILED_SHARE.main), troubleOf(known, MAX_FAILED_SHARE.known));
  const clean = mail.filter(({ day }) => trouble === null || day > trouble.day);
  const since = clean[0] === undefined ? null : Date.parse(clean[0].day);
  const shown = { now, since, unknownSources: unknownSources.slice(0, MAX_UNKNOWN_SOURCES) };
  if (trouble !== null && trouble.day > utcDay(at - NEEDED.quarantine.days * DAY_MS))
    return { ...shown, safe: "none", reasons: [troubleText(trouble)] };
  if (mail.length === 0)
    return {
      ...shown,
      safe: current,
      reasons: [`No report that counts is about the last ${WINDOW_DAYS} days.`],
    };
  const unknown = unknownSources.reduce((sum, { messages }) => sum + messages, 0);
  const reasons = [passedText(sumOf(known)), ...obstacles(sumOf(known).messages, unknown)];
  if (reasons.length > 1) return { ...shown, safe: current, reasons };
  const days = since === null ? 0 : Math.floor((at - since) / DAY_MS);
  const reported = new Set(clean.map(({ day }) => day)).size;
  const reached = DMARC_POLICIES.findLast(
    (policy) => days >= NEEDED[policy].days && reported >= NEEDED[policy].reported,
  );
  const safe = stricter(current, reached ?? "none");
  const next = DMARC_POLICIES[DMARC_POLICIES.indexOf(safe) + 1];
  return {
    ...shown,
    safe,
    reasons: next === undefined ? reasons : [...reasons, neededText(next, days, reported)],
  };
}

/** Returns the next step of a policy that reports move: down at once, up one policy at a time. */
export function nextPolicy(
  { now, safe }: PolicyAdvice,
  movedAt: number | null,
  at: number,
): DmarcPolicy | null {
  const [current, target] = [DMARC_POLICIES.indexOf(now ?? "none"), DMARC_POLICIES.indexOf(safe)];
  if (target < current) return safe;
  const rested = movedAt === null || at - movedAt >= NEEDED.quarantine.days * DAY_MS;
  return target > current && rested ? (DMARC_POLICIES[current + 1] ?? null) : null;
}

type Sum = Pick<SourceDay, "messages" | "failed">;
type Trouble = Sum & { day: string };

function sumOf(days: readonly Sum[]): Sum {
  return days.reduce(
    (sum, { messages, failed }) => ({ messages: sum.messages + messages, failed: sum.failed + failed }),
    {
      messages: 0,
      failed: 0,
    },
  );
}

/**
 * Divides the mail by its sources. Known are ours, and those with at least half of their mail passing DMARC. Main ones also have a
 * good part of it, which leaves out forwarders: a forger may share their addresses.
 */
function sourcesOf(mail: readonly SourceDay[], ownIps: readonly string[]) {
  const sums = new Map(
    [...Map.groupBy(mail, ({ source }) => source)].map(([source, days]) => [source, sumOf(days)] as const),
  );
  const { messages: all, failed: allFailed } = sumOf(mail);
  const enough = (all - allFailed) * MAIN_SHARE;
  const known = new Set<string>();
  const main = new Set<string>();
  for (const [source, { messages, failed }] of sums) {
    const isOurs = ownIps.includes(source);
    if (isOurs || failed * 2 <= messages) known.add(source);
    if (isOurs || (known.has(source) && messages - failed >= enough)) main.add(source);
  }
  return {
    known: mail.filter(({ source }) => known.has(source)),
    main: mail.filter(({ source }) => main.has(source)),
    unknownSources: [...sums]
      .filter(([source]) => !known.has(source))
      .map(([source, { messages }]) => ({ source, messages }))
      .sort((a, b) => b.messages - a.messages),
  };
}

/** Returns the latest day on which more than this share of the mail failed. */
function troubleOf(mail: readonly SourceDay[], share: number): Trouble | null {
  const days = [...Map.groupBy(mail, ({ day }) => day)].map(([day, sources]) => ({ day, ...sumOf(sources) }));
  return days.findLast(({ messages, failed }) => failed >= MIN_FAILED && failed > messages * share) ?? null;
}

function later(one: Trouble | null, other: Trouble | null): Trouble | null {
  return one === null || (other !== null && other.day > one.day) ? other : one;
}

function stricter(one: DmarcPolicy, other: DmarcPolicy): DmarcPolicy {
  return DMARC_POLICIES.indexOf(one) > DMARC_POLICIES.indexOf(other) ? one : other;
}

/** Returns the obstacles to a stricter policy, in words. */
function obstacles(known: number, unknown: number): string[] {
  const all = known + unknown;
  return [
    ...(known < MIN_MESSAGES
      ? [`A stricter policy needs reports on ${MIN_MESSAGES} messages of known sources.`]
      : []),
    ...(unknown > all * MAX_UNKNOWN_SHARE
      ? [
          `${percent(unknown, all)} of the messages come from unknown sources. Sign their mail if they are yours.`,
        ]
      : []),
  ];
}

function troubleText({ day, messages, failed }: Trouble): string {
  return `On ${day}, ${failed} of ${messages} messages from known sources failed DMARC.`;
}

function passedText({ messages, failed }: Sum): string {
  return `Of ${messages} messages from known sources, ${percent(messages - failed, messages)} passed DMARC.`;
}

function neededText(policy: DmarcPolicy, days: number, reported: number): string {
  const needed = NEEDED[policy];
  return `The policy ${policy} needs ${needed.days} days without trouble, ${needed.reported} of them with reports. So far there are ${days} days, ${reported} with reports.`;
}

function percent(part: number, whole: number): string {
  return `${whole === 0 ? 0 : Math.floor((1000 * part) / whole) / 10} %`;
}
