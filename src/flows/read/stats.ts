import { DAY_MS, HOUR_MS } from "../../core/time/units.ts";
import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import type { Db } from "../../store/engine/client.ts";
import {
  busiestDomains,
  type DestinationCounts,
  deliveryDurations,
  type DurationCount,
  FIGURES,
  type Figure,
  figuresOf,
  type Settled,
} from "../../store/projects/stats.ts";
import { type ProviderCounts, providerCounts } from "../../store/projects/provider-stats.ts";
import { providerOfLane } from "../lanes/providers.ts";

/** Intervals by name, each with the longest range it is shown for, milliseconds. */
export const INTERVALS = {
  hour: { intervalMs: HOUR_MS, longestMs: 31 * DAY_MS },
  day: { intervalMs: DAY_MS, longestMs: 366 * DAY_MS },
} as const;
export type Interval = keyof typeof INTERVALS;

/** Domains shown at most. */
export const SHOWN_DESTINATIONS = 50;
/**
 * Days read at once, because a read holds the event loop. A day has up to a thousand domains with some thirty rows
 * each.
 */
const DAYS_OF_DOMAINS = 1;
const DAYS_OF_DURATIONS = 7;
/** Domains of a day that are added up. A day has no more. */
const CANDIDATES = 1001;
/** Digits after the decimal point of a rate. */
const RATE_DIGITS = 6;

export type Figures = Readonly<Record<Figure, number>>;

/**
 * Outcomes of messages to a domain, and the median time of its deliveries in seconds. It is null without deliveries.
 */
export interface Destination extends DestinationCounts {
  medianSeconds: number | null;
}

export interface Stats {
  /** One per interval, oldest first. */
  data: readonly (Figures & { at: number })[];
  totals: Figures;
  rates: { bounce: number; complaint: number };
  byDestination: Destination[];
  byProvider: ProviderStats[];
}

/** How a provider's users take the mail, by their complaints. */
export type Standing = "good" | "warn" | "bad";

/** Outcomes of messages to a provider. */
export interface ProviderStats extends ProviderCounts {
  /** The provider, as its users know it. */
  title: string;
  /** Share of the delivered messages. */
  complaintRate: number;
  /** Null if the messages are too few to tell. */
  standing: Standing | null;
}

/** Share of complaints from which a provider warns, and from which it refuses: Google's and Yahoo's rules for senders. */
export const COMPLAINTS_WARN = 0.001;
export const COMPLAINTS_BAD = 0.003;
/** Fewest deliveries from which a rate tells something. */
const TELLING_DELIVERIES = 500;

/** A range of milliseconds since the epoch: from `from` inclusive to `to` exclusive. */
export interface Range {
  from: number;
  to: number;
}

/** Reads the project's figures of every interval that the range touches, and of every UTC day for destinations. */
export async function readStats(db: Db, senderId: string, interval: Interval, asked: Range): Promise<Stats> {
  const { intervalMs } = INTERVALS[interval];
  const range = { from: floorTo(asked.from, intervalMs), to: -floorTo(-asked.to, intervalMs) };
  const kept = await figuresOf(db, senderId, { ...range, intervalMs });
  const byTime = new Map(kept.map((interval) => [interval.at, interval.figures]));
  const starts = Array.from(
    { length: (range.to - range.from) / intervalMs },
    (_, place) => range.from + place * intervalMs,
  );
  return {
    data: starts.map((at) => ({ at, ...(byTime.get(at) ?? NONE) })),
    totals: kept.reduce((sum, { figures }) => added(sum, figures), NONE),
    rates: ratesOf(kept),
    byDestination: await destinationsOf(db, senderId, asked),
    byProvider: (await providerCounts(db, senderId, ...daysOf(asked))).map(providerStats),
  };
}

/** Returns the first and the last UTC day of a range, since 1970. */
function daysOf({ from, to }: Range): [first: number, last: number] {
  return [Math.floor(from / DAY_MS), Math.floor((to - 1) / DAY_MS)];
}

function providerStats(counts: ProviderCounts): ProviderStats {
  const { provider, delivered, complained } = counts;
  const complaintRate = delivered === 0 ? 0 : Number((complained / delivered).toFixed(RATE_DIGITS));
  const standing = delivered < TELLING_DELIVERIES ? null : standingOf(complaintRate);
  return { ...counts, title: providerOfLane(provider)?.title ?? provider, complaintRate, standing };
}

/** Returns the standing that a complaint rate gives. */
export function standingOf(complaintRate: number): Standing {
  if (complaintRate >= COMPLAINTS_BAD) return "bad";
  return complaintRate >= COMPLAINTS_WARN ? "warn" : "good";
}

function floorTo(at: number, step: number): number {
  return Math.floor(at / step) * step;
}

const NONE: Figures = {
  accepted: 0,
  sent: 0,
  delivered: 0,
  delayed: 0,
  bounced: 0,
  complained: 0,
  rejected: 0,
  failed: 0,
  opened: 0,
  clicked: 0,
  received: 0,
};

function added(sum: Figures, more: Figures): Figures {
  const total = { ...sum };
  for (const figure of FIGURES) total[figure] += more[figure];
  return total;
}

function ratesOf(kept: readonly Settled[]): Stats["rates"] {
  const sum = (count: (each: Settled) => number): number =>
    kept.reduce((total, each) => total + count(each), 0);
  const settled = sum((each) => each.settled);
  const rate = (count: number): number =>
    settled === 0 ? 0 : Number((count / settled).toFixed(RATE_DIGITS));
  return {
    bounce: rate(sum((each) => each.settledBounced)),
    complaint: rate(sum((each) => each.settledComplained)),
  };
}

/** Returns the busiest domains of the range's days. */
async function destinationsOf(db: Db, senderId: string, asked: Range): Promise<Destination[]> {
  const [firstDay, lastDay] = daysOf(asked);
  const counts = new Map<string, DestinationCounts>();
  for (const [first, last] of slicesOf(firstDay, lastDay, DAYS_OF_DOMAINS)) {
    for (const found of await busiestDomains(db, senderId, first, last, CANDIDATES)) addCounts(counts, found);
    await yieldToEventLoop();
  }
  const shown = [...counts.values()].sort(byVolume).slice(0, SHOWN_DESTINATIONS);
  const names = shown.map(({ domain }) => domain);
  const durations: DurationCount[] = [];
  for (const [first, last] of slicesOf(firstDay, lastDay, DAYS_OF_DURATIONS)) {
    durations.push(...(await deliveryDurations(db, senderId, names, first, last)));
    await yieldToEventLoop();
  }
  const byDomain = Map.groupBy(durations, ({ domain }) => domain);
  return shown.map((each) => ({ ...each, medianSeconds: medianSeconds(byDomain.get(each.domain) ?? []) }));
}

function slicesOf(firstDay: number, lastDay: number, days: number): [first: number, last: number][] {
  const slices: [number, number][] = [];
  for (let first = firstDay; first <= lastDay; first += days)
    slices.push([first, Math.min(first + days - 1, lastDay)]);
  return slices;
}

function addCounts(counts: Map<string, DestinationCounts>, found: DestinationCounts): void {
  const before = counts.get(found.domain);
  if (before === undefined) return void counts.set(found.domain, { ...found });
  before.delivered += found.delivered;
  before.delayed += found.delayed;
  before.bounced += found.bounced;
}

function volume({ delivered, delayed, bounced }: DestinationCounts): number {
  return delivered + delayed + bounced;
}

function byVolume(a: DestinationCounts, b: DestinationCounts): number {
  return volume(b) - volume(a) || (a.domain < b.domain ? -1 : 1);
}

/** Ratio of a step to the one before it, as the schema makes them. */
const STEP_RATIO = 1.2;

/** Returns the middle of the median's step, in seconds: at most a tenth off. Returns null without deliveries. */
export function medianSeconds(durations: readonly Pick<DurationCount, "ms" | "count">[]): number | null {
  const sorted = [...durations].sort((a, b) => a.ms - b.ms);
  const total = sorted.reduce((sum, { count }) => sum + count, 0);
  let seen = 0;
  for (const { ms, count } of sorted) {
    seen += count;
    if (seen * 2 >= total) return Number((ms / Math.sqrt(STEP_RATIO) / 1000).toPrecision(3));
  }
  return null;
}
