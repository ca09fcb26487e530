/**
 * Proves that no reader of hostile bytes takes time or memory beyond n log n, and that no input holds a thread for more
 * than two seconds: `bun bench/prove/scaling.ts [--only=TEXT] [--verbose]`. A reader gets each shape at a quarter, a half
 * and the whole of a size that takes a while, then at the largest accepted size. Readers with faults on purpose come
 * first, and the run must find them. About three minutes.
 */
import { join } from "node:path";
import { printMarkdown } from "../support/inbound-table.ts";
import { type Growth, MOST_HELD_MS } from "./support/growth.ts";
import type { GrowthMessage } from "./support/growth-child.ts";
import { endWithin } from "./support/limit.ts";
import { allOf, atLeast, conclude, fact, flag, none, option } from "./support/table.ts";
import { CONTROLS } from "./support/worst/controls.ts";
import { WORST_CASES } from "./support/worst/all.ts";
import type { WorstCase } from "./support/worst/worst-case.ts";

const LIMIT_MS = 600_000;
/** Time without a word after which a thread counts as held for good: others use the machine, too. */
const SILENCE_MS = 20_000;
/** Processes that measure at a time. */
const MEASURERS = 2;
const KIBIBYTE = 1024;
const MEBIBYTE = 1024 * 1024;
/** Cases without which the run has left out most of what it is for. */
const FEWEST_CASES = 300;

interface Found {
  worst: WorstCase;
  growth: Growth;
}

/** A process that measures, and what it is doing. */
interface Measurer {
  child: Bun.Subprocess;
  /** Reports the current case. */
  heard: (message: GrowthMessage) => void;
}

function startMeasurer(): Measurer {
  const measurer: Measurer = {
    heard: () => undefined,
    child: Bun.spawn([process.execPath, join(import.meta.dir, "support/growth-child.ts")], {
      stdin: "ignore",
      stdout: "inherit",
      stderr: "inherit",
      // As the service is started: the heap is collected as on a small machine.
      env: { ...Bun.env, BUN_JSC_forceRAMSize: "400000000" },
      ipc: (message: GrowthMessage) => measurer.heard(message),
    }),
  };
  return measurer;
}

const measurers = new Set<Measurer>();
process.on("exit", () => {
  for (const { child } of measurers) child.kill("SIGKILL");
});

/** Has a case measured. A process that falls silent, or ends, has found that its input holds a thread for good. */
async function measured(measurer: Measurer, place: number): Promise<Growth> {
  const { promise, resolve } = Promise.withResolvers<Growth>();
  let octets = 0;
  const broken = (why: string): void =>
    resolve({ octets, heldMs: Number.NaN, ms: [], ratio: null, grown: Number.NaN, faults: [why] });
  const late = (): void => broken(`${octets} octets hold the thread for good`);
  let silence = setTimeout(late, SILENCE_MS);
  measurer.heard = (message) => {
    clearTimeout(silence);
    if ("growth" in message) return resolve(message.growth);
    octets = message.began;
    silence = setTimeout(late, SILENCE_MS);
  };
  void measurer.child.exited.then(() => broken(`the process ended at ${octets} octets`));
  measurer.child.send(place);
  const growth = await promise;
  clearTimeout(silence);
  return growth;
}

/** Measures cases until none is left. A process that is of no use any more is ended, and another one started. */
async function measureAll(cases: Iterator<[place: number, worst: WorstCase]>): Promise<void> {
  let measurer = startMeasurer();
  for (let next = cases.next(); next.done !== true; next = cases.next()) {
    measurers.add(measurer);
    const [place, worst] = next.value;
    const growth = await measured(measurer, place);
    found[place] = { worst, growth };
    for (const fault of growth.faults) console.error(`${worst.reader}, ${worst.shape}: ${fault}`);
    if (!Number.isNaN(growth.heldMs)) continue;
    measurer.child.kill("SIGKILL");
    await measurer.child.exited;
    measurers.delete(measurer);
    measurer = startMeasurer();
  }
  measurer.child.kill("SIGKILL");
}

endWithin(LIMIT_MS);
const only = option("only") ?? "";
const wanted = [...WORST_CASES.entries()].filter(
  ([, worst]) => CONTROLS.includes(worst) || `${worst.reader}: ${worst.shape}`.includes(only),
);
const found: Found[] = [];
const cases = wanted.values();
// Only the processor time of each counts, so they may run at the same time.
await Promise.all(Array.from({ length: MEASURERS }, () => measureAll(cases)));

const controls = found.filter((one) => CONTROLS.includes(one.worst));
const real = found.filter(({ worst }) => !CONTROLS.includes(worst));

const shown = (value: number | null | undefined, digits = 1): string =>
  value === null || value === undefined ? "" : value.toFixed(digits);

function printCases(cases: readonly Found[]): void {
  printMarkdown(
    ["reader", "shape", "largest, KiB", "held ms", "n ms", "2n ms", "4n ms", "4n/n", "memory, MiB", "holds"],
    cases.map(({ worst, growth }) => [
      worst.reader,
      worst.shape.replaceAll("|", "\\|"),
      shown(growth.octets / KIBIBYTE, 0),
      shown(growth.heldMs),
      ...[0, 1, 2].map((at) => shown(growth.ms[at])),
      shown(growth.ratio),
      shown(growth.grown / MEBIBYTE, 0),
      growth.faults.length === 0 ? "yes" : "NO",
    ]),
  );
  console.log("");
}

/** Of each reader the shape that holds the thread the longest, and all that are at fault. */
function worstOf(cases: readonly Found[]): Found[] {
  const longest = new Map<string, Found>();
  for (const one of cases) {
    const known = longest.get(one.worst.reader);
    if (known === undefined || one.growth.heldMs > known.growth.heldMs) longest.set(one.worst.reader, one);
  }
  return cases.filter((one) => one.growth.faults.length > 0 || longest.get(one.worst.reader) === one);
}

printCases(flag("verbose") ? [...controls, ...real] : [...controls, ...worstOf(real)]);
/** A thread that is held for good is at fault, and has no time. */
const held = real.map(({ growth }) => growth.heldMs).filter((ms) => !Number.isNaN(ms));
conclude("scaling", [
  allOf(
    "readers at fault on purpose that were found",
    controls.filter(({ growth }) => growth.faults.length > 0).length,
    CONTROLS.length,
  ),
  fact("readers", new Set(real.map(({ worst }) => worst.reader)).size),
  atLeast("shapes", real.length, only === "" ? FEWEST_CASES : 1),
  fact(`longest that an input held a thread, ms (at most ${MOST_HELD_MS})`, Math.max(...held)),
  none("shapes at fault", real.filter(({ growth }) => growth.faults.length > 0).length),
]);
