import { readFileSync, rmSync } from "node:fs";

/** A process started by a bench. */
export interface Child {
  pid: number;
  /** Everything that it has printed on stdout so far. */
  output(): string;
  /** Resident memory now, bytes. */
  memory(): number;
  /** Processor time so far, over all its threads, microseconds. */
  processor(): number;
  /** Asks it to end, and kills it after the grace period. */
  end(): Promise<void>;
  /** Resolves with its output when it has ended by itself. Throws if it failed. */
  finished(): Promise<string>;
}

export interface ChildOptions {
  env?: Record<string, string>;
  /** Text on stdout that shows that it is ready. */
  ready?: string;
  /** File for its output: with a pipe the bench would have to read while it measures. */
  log: string;
  cwd?: string;
}

const READY_POLL_MS = 20;
const READY_LIMIT_MS = 90_000;
const END_GRACE_MS = 10_000;

/** Starts a process and waits until it is ready. The process ends with the bench at the latest. */
export async function startChild(command: readonly string[], options: ChildOptions): Promise<Child> {
  // An earlier process with the same log said that it was ready, too.
  for (const kind of ["out", "err"]) rmSync(`${options.log}.${kind}`, { force: true });
  const started = Bun.spawn([...command], {
    stdin: "ignore",
    stdout: Bun.file(`${options.log}.out`),
    stderr: Bun.file(`${options.log}.err`),
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    env: { PATH: Bun.env.PATH ?? "", ...options.env },
  });
  const kill = (): void => started.kill("SIGKILL");
  process.on("exit", kill);
  const read = (kind: "out" | "err"): string => readFileSync(`${options.log}.${kind}`, "utf8");
  const child: Child = {
    pid: started.pid,
    output: () => read("out"),
    memory: () =>
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${started.pid}/status`, "utf8"))?.[1]) * 1024,
    processor: () => processorTime(started.pid),
    async end() {
      started.kill("SIGTERM");
      const late = setTimeout(kill, END_GRACE_MS);
      await started.exited;
      clearTimeout(late);
      process.off("exit", kill);
    },
    async finished() {
      const code = await started.exited;
      process.off("exit", kill);
      if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}: ${read("err")}`);
      return read("out");
    },
  };
  if (options.ready !== undefined) await untilReady(started, child, options.ready, () => read("err"));
  return child;
}

/**
 * Returns the processor time of a process, microseconds. Linux counts in hundredths of a second: fields 14 and 15 of
 * proc(5), counted after the name, which can contain spaces.
 */
export function processorTime(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}

async function untilReady(
  started: Bun.Subprocess,
  child: Child,
  text: string,
  said: () => string,
): Promise<void> {
  const until = performance.now() + READY_LIMIT_MS;
  while (!child.output().includes(text)) {
    if (started.exitCode !== null || started.signalCode !== null || performance.now() > until)
      throw new Error(`a process did not become ready: ${said()}`);
    await Bun.sleep(READY_POLL_MS);
  }
}
