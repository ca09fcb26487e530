/** Measures how the time and memory of a reader grow with its input. */
import { forgetPeak, peakMemory, residentMemory } from "../../support/peak-memory.ts";
import { threadMs } from "./thread-time.ts";
import type { WorstCase } from "./worst/worst-case.ts";

/** The longest that one input may hold a thread. */
export const MOST_HELD_MS = 2000;
/** Bytes of the first input at least; each further one has four times as many, up to the largest. */
const FIRST_OCTETS = 512;
/** Time of a run that can be compared: at a shorter one a pause of the collector counts more than the reader. */
const COMPARABLE_MS = 40;
/** Below that the largest input is too fast for its growth to matter. */
const NEGLIGIBLE_MS = 10;
/** Less than that a run of a quarter of an input is not taken for: it may be below a step, or too short to measure. */
const LEAST_MS = 4;
/** Runs of each size; the fastest counts, for all that disturbs a run makes it slower. */
const RUNS = 3;
const RUNS_LIMIT_MS = 250;
/** How often sizes that do not compare well are measured again. */
const TRIES = 3;
/**
 * How much more than n log n allows is taken for noise, and for caches that a larger input no longer fits into. Four times
 * the input may take some eleven times as long; a square takes sixteen times.
 */
const TOLERANCE = 2.5;
/** How much more is allowed for memory, which has no caches. */
const MEMORY_TOLERANCE = 1.5;
/** Memory that the collector may leave lying about, whatever the input. */
const FREE_OCTETS = 48 * 1024 * 1024;
/** Bytes from which on a run's memory says something. */
const WEIGHED_OCTETS = 256 * 1024;
/** Time of a step that a reader may take at some size, as when it goes another way from there on. */
const STEP_MS = 20;
const QUARTER = 4;

/** The result for one reader and shape. */
export interface Growth {
  /** Bytes of the largest input. */
  octets: number;
  /** Processor time of the largest input, milliseconds. */
  heldMs: number;
  /** Times of a quarter, a half and the whole of the largest input that was run several times. */
  ms: number[];
  /** How much more four times the input takes; null where the largest input takes no time to speak of. */
  ratio: number | null;
  /** Bytes that memory grew by with the largest input. */
  grown: number;
  faults: string[];
}

/** Told of each input before it is read, for it may never be read to its end. */
type Began = (octets: number) => Promise<void>;

async function timed(read: () => unknown): Promise<number> {
  const began = threadMs();
  await read();
  return threadMs() - began;
}

/** Returns the growth that n log n allows from one size to another. */
function allowed(from: number, to: number, tolerance = TOLERANCE): number {
  return ((to * Math.log2(to)) / (from * Math.log2(from))) * tolerance;
}

/** Time and memory of a run. */
interface Taken {
  ms: number;
  /** Bytes that memory grew by. */
  grown: number;
}

type Run = (octets: number) => Promise<Taken>;

/** Measures one reader on one shape. */
export async function growthOf(worst: WorstCase, began: Began): Promise<Growth> {
  const { most } = worst;
  const run: Run = async (octets) => {
    const read = worst.prepare(octets);
    await began(octets);
    return weighed(read, octets);
  };
  let octets = most;
  while (octets >= QUARTER * FIRST_OCTETS) octets = Math.floor(octets / QUARTER);
  let taken = await run(octets);
  while (taken.ms < COMPARABLE_MS && octets < most) {
    octets = larger(octets, most);
    taken = await run(octets);
  }
  const growth: Growth = { octets, heldMs: taken.ms, ms: [], ratio: null, grown: taken.grown, faults: [] };
  if (taken.ms >= NEGLIGIBLE_MS && taken.ms <= MOST_HELD_MS) await compare(growth, worst, began);
  await toTheLargest(growth, most, run);
  if (growth.heldMs > MOST_HELD_MS)
    growth.faults.push(`${growth.octets} octets hold the thread for ${Math.round(growth.heldMs)} ms`);
  return growth;
}

/** Four times as many bytes. A remainder of the division is not a separate step. */
function larger(octets: number, most: number): number {
  return (QUARTER + 1) * octets > most ? most : QUARTER * octets;
}

/** Compares a quarter of the input with all of it. */
async function compare(growth: Growth, worst: WorstCase, began: Began): Promise<void> {
  const sizes = [QUARTER, 2, 1].map((share) => Math.floor(growth.octets / share));
  const [quarter = 1, , whole = 1] = sizes;
  let best: number[] = sizes.map(() => Number.POSITIVE_INFINITY);
  for (let tries = 0; tries < TRIES; tries++) {
    const ms: number[] = [];
    for (const size of sizes) ms.push(await fastest(worst.prepare(size), () => began(size)));
    best = best.map((known, at) => Math.min(known, ms[at] ?? known));
    growth.ms = best;
    growth.ratio = (best[2] ?? 0) / Math.max(best[0] ?? 0, LEAST_MS);
    if (growth.ratio <= allowed(quarter, whole)) return;
  }
  growth.faults.push(`${quarter} to ${whole} octets take ${growth.ratio?.toFixed(1)} times as long`);
}

async function fastest(read: () => unknown, began: () => Promise<void>): Promise<number> {
  let [best, spent] = [Number.POSITIVE_INFINITY, 0];
  for (let runs = 0; runs < RUNS && spent < RUNS_LIMIT_MS; runs++) {
    await began();
    const ms = await timed(read);
    best = Math.min(best, ms);
    spent += ms;
  }
  return best;
}

/** Continues to the largest input, which shows a square that is small at first. */
async function toTheLargest(growth: Growth, most: number, run: Run): Promise<void> {
  while (growth.octets < most && growth.heldMs <= MOST_HELD_MS) {
    const { octets, heldMs, grown } = growth;
    growth.octets = larger(octets, most);
    let taken = await run(growth.octets);
    for (let tries = 1; tries < TRIES && isDoubtful(taken, growth, heldMs, octets); tries++) {
      const again = await run(growth.octets);
      taken = { ms: Math.min(taken.ms, again.ms), grown: taken.grown };
    }
    growth.heldMs = taken.ms;
    growth.grown = taken.grown;
    const step = `${octets} to ${growth.octets} octets take`;
    if (isTooSlow(growth, octets, heldMs))
      growth.faults.push(`${step} ${(growth.heldMs / heldMs).toFixed(1)} times as long`);
    if (taken.grown > FREE_OCTETS + grown * allowed(octets, growth.octets, MEMORY_TOLERANCE))
      growth.faults.push(`${step} ${(taken.grown / grown).toFixed(1)} times the memory`);
  }
}

/** Returns whether another run may show that the reader is fast enough. */
function isDoubtful({ ms }: Taken, { octets }: Growth, beforeMs: number, before: number): boolean {
  return ms < MOST_HELD_MS / 2 && isTooSlow({ octets, heldMs: ms }, before, beforeMs);
}

function isTooSlow({ octets, heldMs }: Pick<Growth, "octets" | "heldMs">, before: number, beforeMs: number) {
  return heldMs / Math.max(beforeMs, STEP_MS) > allowed(before, octets);
}

/** Runs a reader and measures its memory, after the collector has removed all that earlier runs left. */
async function weighed(read: () => unknown, octets: number): Promise<Taken> {
  if (octets >= WEIGHED_OCTETS) Bun.gc(true);
  forgetPeak(process.pid);
  const before = residentMemory(process.pid);
  const ms = await timed(read);
  return { ms, grown: Math.max(0, peakMemory(process.pid) - before) };
}
