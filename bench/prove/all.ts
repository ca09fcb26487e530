/**
 * Makes every run of this folder once, shortened, and prints one line for each: `bun bench/prove/all.ts
 * [--only=NAME]`. Takes about twenty minutes and needs root, strace and libfaketime. Exits with 1 if a run does not
 * hold; the output of that run goes to stderr.
 */
import { chmodSync, readdirSync } from "node:fs";
import { join } from "node:path";
import "../support/end-on-signal.ts";
import { benchFolder } from "../support/folder.ts";
import { chosen } from "../support/options.ts";
import { lastWords, runProgram } from "../support/run-program.ts";

/** Time limit of one run. They usually give up earlier by themselves. */
const LIMIT_MS = 25 * 60_000;
const NAME_WIDTH = 12;

/** Each run with settings that make it short but leave something to prove. */
const RUNS: readonly (readonly [name: string, settings: readonly string[]])[] = [
  ["crash", ["--kills=12", "--rate=20"]],
  ["fsync", ["--count=200"]],
  ["disk", ["--points=8", "--rounds=2"]],
  ["redis", ["--rounds=1", "--pause=3"]],
  ["webhooks", ["--rounds=2", "--hung=20"]],
  ["fan-out", ["--hooks=100", "--projects=10"]],
  ["dns", ["--rounds=1", "--seconds=8"]],
  ["scaling", []],
  ["limits", []],
  ["slow", ["--rounds=2", "--seconds=8", "--http=300", "--smtp=300", "--idle=2000"]],
  ["stall", ["--rounds=1"]],
  ["ssrf", []],
  // With fewer minutes, the first third would probably have no kill.
  ["soak", ["--minutes=3"]],
  ["clock", ["--mails=80"]],
  ["bodies", ["--rounds=1", "--mebibytes=20"]],
  ["providers", ["--mails=40"]],
  // Without sqld or root it says so and proves nothing.
  ["three-hosts", ["--away=4", "--rate=10"]],
];

const unknown = readdirSync(import.meta.dir)
  .filter((file) => file.endsWith(".ts") && file !== "all.ts")
  .filter((file) => !RUNS.some(([name]) => `${name}.ts` === file));
if (unknown.length > 0) throw new Error(`runs without settings here: ${unknown.join(", ")}`);

const home = benchFolder();
// Servers that run as other users must be able to enter the folder.
chmodSync(home, 0o755);
const runs = chosen(RUNS);
if (runs.length === 0) throw new Error("no run has that name");
for (const [name, settings] of runs) {
  const log = join(home, `${name}.log`);
  const { code, seconds } = await runProgram(join(import.meta.dir, `${name}.ts`), settings, {
    log,
    limitMs: LIMIT_MS,
    folder: home,
  });
  console.log(`${name.padEnd(NAME_WIDTH)}${code === 0 ? "held" : "NOT held"}, ${seconds.toFixed(0)} s`);
  if (code === 0) continue;
  process.exitCode = 1;
  console.error(
    `${code === null ? "it did not end by itself" : `it ended with ${code}`}:\n${lastWords(log)}`,
  );
}
