/** Runs strace on the service: shows its calls as lines, and makes calls fail. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const STRACE = "strace";
/** Characters of a string that strace shows: a page of the database, and a reply with its header. */
const SHOWN_OCTETS = 4200;

/** Throws if this machine or its kernel does not allow processes to be traced. */
export function mustTrace(): void {
  const tried = spawnSync(STRACE, ["-f", "-o", "/dev/null", "true"], { encoding: "utf8" });
  if (tried.status !== 0)
    throw new Error(
      `strace does not work here: ${tried.error?.message ?? tried.stderr}; apt-get install strace`,
    );
}

/** A running trace, read while it is written: nothing of it stays on disk. */
export interface Trace {
  /** The command to start the service with. The service is the started process, and strace its descendant. */
  wrap: readonly string[];
  /** Resolves when the traced process has ended and every line was read. */
  ended: Promise<void>;
}

/** Traces the calls of a process to be started, line by line, in the order in which they happen. */
export function traceCalls(home: string, calls: readonly string[], line: (line: string) => void): Trace {
  const pipe = join(home, "trace");
  const made = spawnSync("mkfifo", [pipe], { encoding: "utf8" });
  if (made.status !== 0) throw new Error(made.stderr);
  const reader = Bun.spawn(["cat", pipe], { stdin: "ignore", stdout: "pipe" });
  process.on("exit", () => reader.kill("SIGKILL"));
  return {
    // With -D the tracer is a grandchild, so that signals to the started process reach the service. -y names files.
    wrap: [
      STRACE,
      "-D",
      "-f",
      "-y",
      "-s",
      String(SHOWN_OCTETS),
      "-o",
      pipe,
      "-e",
      `trace=${calls.join(",")}`,
    ],
    ended: readLines(reader.stdout, line),
  };
}

async function readLines(stream: ReadableStream<Uint8Array>, line: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder("latin1");
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const one of lines) line(one);
  }
}

/** A fault to inject: the calls, the error, and the number of the failing call, in strace's words. */
export interface Fault {
  calls: readonly string[];
  error: "EIO" | "ENOSPC";
  /** `7`: only the seventh; `7+`: the seventh and all later ones. */
  when: string;
}

/** A running fault. */
export interface Injection {
  /** Calls made to fail so far. */
  struck(): number;
  /** Detaches strace. Resolves with the number of calls it made fail. */
  end(): Promise<number>;
}

/** Makes calls of a running process fail on these files only. Resolves when strace is attached to all its threads. */
export async function inject(pid: number, files: readonly string[], fault: Fault): Promise<Injection> {
  const calls = fault.calls.join(",");
  const tracer = Bun.spawn(
    [
      STRACE,
      "-f",
      "-s",
      "8",
      "-p",
      String(pid),
      ...files.flatMap((file) => ["-P", file]),
      "-e",
      `trace=${calls}`,
      "-e",
      `inject=${calls}:error=${fault.error}:when=${fault.when}`,
    ],
    { stdin: "ignore", stdout: "ignore", stderr: "pipe" },
  );
  const kill = (): void => tracer.kill("SIGKILL");
  process.on("exit", kill);
  let injected = 0;
  const attached = Promise.withResolvers<void>();
  const read = readLines(tracer.stderr, (line) => {
    if (line.includes("attached")) attached.resolve();
    if (line.includes("(INJECTED)")) injected++;
  }).then(() => attached.reject(new Error("strace ended before it had hold of the process")));
  read.catch(() => undefined);
  await attached.promise;
  return {
    struck: () => injected,
    async end() {
      tracer.kill("SIGINT");
      await tracer.exited;
      await read;
      process.off("exit", kill);
      return injected;
    },
  };
}
