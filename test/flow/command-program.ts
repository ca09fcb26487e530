import { systemClock } from "../../src/clock.ts";
import { failureOf, runCommand } from "../../src/commands/run.ts";
import { loadConfig } from "../../src/config.ts";
import { builtProgram } from "../support/built-program.ts";
import { newFolder } from "../support/folder.ts";
import { type ServiceProcess, serviceProcess } from "../support/process.ts";

export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
  /** Standard output's lines as JSON. */
  json(): Record<string, unknown>[];
}

export interface RunOptions {
  stdin?: string | Uint8Array;
  /** Called with the standard error output so far, each time it grows, and with the program. */
  onError?: (stderr: string, child: Bun.Subprocess) => void;
  /** Called with the program once it has been spawned. */
  onStart?: (child: Bun.Subprocess) => void;
}

export type Env = Readonly<Record<string, string>>;

/** Commands that end the process, or run until it ends. They run in a separate process. */
const ALONE: ReadonlySet<string> = new Set(["serve", "mcp", "listen", "tail"]);

/** Runs a command in this process with only these arguments and settings. Resolves when it has ended. */
export async function postrider(args: readonly string[], env: Env = {}, clock = systemClock): Promise<Ran> {
  if (ALONE.has(args[0] ?? "serve")) return program(args, env);
  let [stdout, stderr] = ["", ""];
  const shell = {
    clock,
    readConfig: () => loadConfig(env),
    out(text: string) {
      stdout += text;
    },
    err(text: string) {
      stderr += text;
    },
    outIsTerminal: false,
  };
  const code = await runCommand(args, shell).catch((error: unknown) => {
    const failure = failureOf(error, args);
    shell.err(failure.says);
    return failure.code;
  });
  return ranWith(code, stdout, stderr);
}

function ranWith(code: number, stdout: string, stderr: string): Ran {
  const json = () => stdout.split("\n").flatMap((line) => (line === "" ? [] : JSON.parse(line)));
  return { code, stdout, stderr, json };
}

/**
 * Runs the built program with only these arguments and settings. Resolves when it has ended. @param through a
 * program with arguments that runs it
 */
export async function program(
  args: readonly string[],
  env: Env = {},
  options: RunOptions = {},
  through: readonly string[] = [],
): Promise<Ran> {
  const cwd = newFolder("command");
  const child = Bun.spawn([...through, await builtProgram(), ...args], {
    cwd,
    env: { PATH: Bun.env.PATH ?? "", ...env },
    stdin: options.stdin === undefined ? "ignore" : Buffer.from(options.stdin),
    stdout: "pipe",
    stderr: "pipe",
  });
  options.onStart?.(child);
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    textOf(child.stderr, (text) => options.onError?.(text, child)),
  ]);
  return ranWith(await child.exited, stdout, stderr);
}

async function textOf(stream: ReadableStream<Uint8Array>, told: (text: string) => void): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true });
    told(text);
  }
  return text;
}

/** Runs the program on a new terminal. Returns both outputs together, as the terminal shows them. */
export async function onTerminal(args: readonly string[], env: Env): Promise<string> {
  let shown = "";
  const decoder = new TextDecoder();
  const cwd = newFolder("command");
  const child = Bun.spawn([await builtProgram(), ...args], {
    cwd,
    env: { PATH: Bun.env.PATH ?? "", ...env },
    terminal: {
      cols: 200,
      rows: 50,
      data: (_terminal, bytes) => {
        shown += decoder.decode(bytes, { stream: true });
      },
    },
  });
  await child.exited;
  return shown.replaceAll("\r\n", "\n");
}

/** A service that captures all mail, with the settings by which commands find it. */
export function captureService(env: Env = {}): { service: ServiceProcess; env: Env; folder: string } {
  const folder = newFolder("command");
  const service = serviceProcess({
    DATA_DIR: folder,
    SERVICE_DOMAIN: "postrider.localhost",
    DELIVERY: "capture",
    ...env,
  });
  const { port } = new URL(service.url);
  return { service, folder, env: { DATA_DIR: folder, HOST: "127.0.0.1", PORT: port } };
}

/** The status code for a request with the key. */
export async function statusWith(url: string, key: string, path = "/v1/api-keys"): Promise<number> {
  const answer = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${key}` } });
  await answer.arrayBuffer();
  return answer.status;
}
