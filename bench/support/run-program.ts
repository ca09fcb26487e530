/** Runs whole benches as processes, each within its time. */
import { openSync, closeSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { familyOf, statOf } from "./process-family.ts";

const END_ON_SIGNAL = join(import.meta.dir, "end-on-signal.ts");
/** Time for a program that is told to end, and what it started, before they are made to. */
const GRACE_MS = 10_000;
const POLL_MS = 20;
/** Octets of what a program has said that are shown. */
const SHOWN_OCTETS = 8192;
/** Field of proc(5) behind the name: when the process was started. With its number it names a process for good. */
const STARTED = 19;

export interface ProgramOptions {
  /** File that takes all it says. */
  log: string;
  limitMs: number;
  /** Where its temporary files go. */
  folder: string;
}

export interface Ended {
  /** Its exit status; null where it took longer than it may, or died of a signal. */
  code: number | null;
  seconds: number;
}

/** Runs a TypeScript program to its end. It, and what it started, ends at the limit, and with this process. */
export async function runProgram(
  file: string,
  args: readonly string[],
  { log, limitMs, folder }: ProgramOptions,
): Promise<Ended> {
  const began = performance.now();
  const output = openSync(log, "w");
  const program = Bun.spawn([process.execPath, "--preload", END_ON_SIGNAL, file, ...args], {
    stdin: "ignore",
    stdout: output,
    stderr: output,
    env: { ...Bun.env, TMPDIR: folder },
  });
  closeSync(output);
  const atExit = (): void => {
    program.kill("SIGTERM");
    untilEnded(program.pid);
  };
  // Before the folder goes in which it works.
  process.prependListener("exit", atExit);
  let late = false;
  const limit = setTimeout(() => {
    late = true;
    endFamily(program.pid);
  }, limitMs);
  const code = await program.exited;
  clearTimeout(limit);
  process.off("exit", atExit);
  return {
    code: late || program.signalCode !== null ? null : code,
    seconds: (performance.now() - began) / 1000,
  };
}

/** Tells a process to end; after the grace it and what it had started are made to, where they still run. */
function endFamily(pid: number): void {
  const family = familyOf(pid).map((member) => [member, statOf(member)?.[STARTED]] as const);
  process.kill(pid, "SIGTERM");
  setTimeout(() => {
    for (const [member, started] of family)
      if (started !== undefined && statOf(member)?.[STARTED] === started) process.kill(member, "SIGKILL");
  }, GRACE_MS);
}

/** Waits for a child whose exit nobody takes note of any more: it stays behind as a zombie. */
function untilEnded(pid: number): void {
  const until = performance.now() + GRACE_MS;
  while (!["Z", undefined].includes(statOf(pid)?.[0]) && performance.now() < until) Bun.sleepSync(POLL_MS);
}

/** The end of what a program has said. */
export function lastWords(log: string): string {
  return readFileSync(log).subarray(-SHOWN_OCTETS).toString();
}
