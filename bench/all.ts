/**
 * Runs all benches one after another and prints their figures with their goals: `bun bench/all.ts [--quick]
 * [--only=NAME] [--json=FILE]`. Takes about half an hour. With `--quick` it uses single rounds and shorter queues and
 * lists, and takes seven minutes. Exits with 1 only if a bench breaks.
 */
import { chmodSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { join } from "node:path";
import "./support/end-on-signal.ts";
import { type Figures, handOver, readFigures } from "./support/figures.ts";
import { benchFolder } from "./support/folder.ts";
import { GOALS, type Line } from "./support/goals.ts";
import { printMarkdown } from "./support/inbound-table.ts";
import { chosen, flag } from "./support/options.ts";
import { lastWords, runProgram } from "./support/run-program.ts";

interface Job {
  args: readonly string[];
  quick: readonly string[];
  limitMinutes: number;
  /** Exit statuses that mean that it has done its work. */
  ends?: readonly number[];
}

const QUEUE_KINDS = ["short", "long", "hangs", "refuses"].map((kind) => `--only=${kind}`);
const ONE_ROUND = ["--rounds=1"];
const MINUTE_MS = 60_000;

const JOBS: readonly (readonly [name: keyof typeof GOALS, job: Job])[] = [
  ["accept", { args: [], quick: ONE_ROUND, limitMinutes: 6 }],
  ["inbound", { args: [], quick: ONE_ROUND, limitMinutes: 20 }],
  ["outbound", { args: [], quick: ONE_ROUND, limitMinutes: 10 }],
  [
    "queue",
    {
      args: [...QUEUE_KINDS, "--rounds=3"],
      quick: [...QUEUE_KINDS, ...ONE_ROUND, "--long=20000", "--dead=10000"],
      limitMinutes: 20,
    },
  ],
  ["idle", { args: [], quick: ["--connections=2000"], limitMinutes: 8 }],
  ["waiters", { args: [], quick: ["--waiters=2000"], limitMinutes: 4 }],
  ["lists", { args: [], quick: ["--many=50000"], limitMinutes: 20 }],
  ["text-search", { args: [], quick: ["--many=25000"], limitMinutes: 30 }],
  // It also exits with 1 if its goal is not met.
  ["retention", { args: [], quick: ["--messages=1000"], limitMinutes: 10, ends: [0, 1] }],
];

const home = benchFolder();
// Postfix runs as other users, which must be able to enter the folder.
chmodSync(home, 0o755);

/** Returns the figures of a bench. Throws if the bench broke. */
async function measure(name: keyof typeof GOALS, job: Job): Promise<Figures> {
  const [file, log] = [join(home, `${name}.json`), join(home, `${name}.log`)];
  const args = [...(flag("quick") ? job.quick : job.args), `--json=${file}`];
  const options = { log, limitMs: job.limitMinutes * MINUTE_MS, folder: home };
  const { code, seconds } = await runProgram(join(import.meta.dir, `${name}.ts`), args, options);
  console.error(`${name}: ${seconds.toFixed(0)} s`);
  if (code === null) throw new Error(`did not end by itself:\n${lastWords(log)}`);
  if (!(job.ends ?? [0]).includes(code)) throw new Error(`ended with ${code}:\n${lastWords(log)}`);
  return readFigures(file);
}

const jobs = chosen(JOBS);
if (jobs.length === 0) throw new Error("no bench has that name");
const measured: Record<string, Record<string, number>> = {};
const lines: Line[] = [];
const loads = [loadavg()[0] ?? 0];
for (const [name, job] of jobs) {
  try {
    const figures = await measure(name, job);
    for (const [row, columns] of Object.entries(figures)) measured[`${name}: ${row}`] = columns;
    lines.push(...GOALS[name](figures));
  } catch (error) {
    process.exitCode = 1;
    console.error(`${name} broke: ${error instanceof Error ? error.message : error}`);
    lines.push({ figure: name, ours: "broke", beside: "", ratio: "", goal: "", met: null });
  }
  loads.push(loadavg()[0] ?? 0);
}

const met = (line: Line): string => (line.met === null ? "" : line.met ? "yes" : "no");
printMarkdown(
  ["figure", "ours", "floor or peer", "ratio", "goal", "met"],
  lines.map((line) => [line.figure, line.ours, line.beside, line.ratio, line.goal, met(line)]),
);
const load = `load ${Math.min(...loads).toFixed(1)} to ${Math.max(...loads).toFixed(1)}`;
console.log(`${availableParallelism()} cores, ${load}${flag("quick") ? ", quick" : ""}.`);
handOver(measured);
