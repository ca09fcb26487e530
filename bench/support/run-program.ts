/** Runs whole benches as processes, each with a time limit. */
import { openSync, closeSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { familyOf, statOf } from "./process-family.ts";

const END_ON_SIGNAL = join(import.meta.dir, "end-on-signal.ts");
/** Time for a program and its children to end after a signal, before they are killed. */
const GRACE_MS = 10_000;
const POLL_MS = 20;
/** Bytes of a program's output that are shown. */
const SHOWN_OCTETS = 8192;
/** Field of proc(5) after the name: the start time. With its number it identifies a process for good. */
const STARTED = 19;

export interface ProgramOptions {
  /** File for all its output. */
  log: string;
  limitMs: number;
  /** Folder for its temporary files. */
  folder: string;
}

export interface Ended {
  /** Its exit status; null if it took too long, or died of a signal. */
  code: number | null;
  seconds: number;
}

/** Runs a TypeScript program. The program and its children end at the limit, or with this process. */
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
  // Before the folder in which it works is removed.
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

/** Asks a process to end. After the grace period it and its children are killed, if they still run. */
function endFamily(pid: number): void {
  const family = familyOf(pid).map((member) => [member, statOf(member)?.[STARTED]] as const);
  process.kill(pid, "SIGTERM");
  setTimeout(() => {
    for (const [member, started] of family)
      if (started !== undefined && statOf(member)?.[STARTED] === started) process.kill(member, "SIGKILL");
  }, GRACE_MS);
}

/** Waits for a child that has ended but was not reaped: it stays as a zombie. */
function untilEnded(pid: number): void {
  const until = performance.now() + GRACE_MS;
  while (!["Z", undefined].includes(statOf(pid)?.[0]) && performance.now() < until) Bun.sleepSync(POLL_MS);
}

/** Returns the end of a program's output. */
export function lastWords(log: string): string {
  return readFileSync(log).subarray(-SHOWN_OCTETS).toString();
}
