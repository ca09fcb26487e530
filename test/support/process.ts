import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./redis.ts";

const MAIN = join(import.meta.dir, "../../src/main.ts");

/** The service as a process of its own, which a test may kill, on files that outlive it. */
export interface ServiceProcess {
  url: string;
  smtpPort: number;
  key: string;
  /** What it has printed since it was started last. */
  output(): { stdout: string; stderr: string };
  /** Starts it, on the same files and ports; resolves when it is ready. */
  start(env?: Record<string, string>, preload?: string): Promise<void>;
  /** Ends it as a power cut would. */
  kill(): Promise<void>;
  /** Sends SIGHUP, which has it read its certificate anew. */
  reload(): void;
  /** Sends SIGTERM; resolves with the exit code. */
  terminate(): Promise<number>;
  /** Resolves when it has ended by itself. */
  exited(): Promise<number>;
  /** Kills it where it runs, and deletes its files. */
  remove(): Promise<void>;
}

const ROOT_API_KEY = "test-root-key-0123456789-0123456789";
const READY_POLL_MS = 20;

/** A process that is not started yet. `env` lies over settings fit for a test. */
export function serviceProcess(env: Record<string, string>): ServiceProcess {
  const folder = mkdtempSync(join(tmpdir(), "postrider-process-"));
  const [port, smtpPort] = [freePort(), freePort()];
  const url = `http://127.0.0.1:${port}`;
  let child: Bun.Subprocess<"ignore", "pipe", "pipe"> | null = null;
  let stdout = "";
  let stderr = "";
  const drain = async (stream: ReadableStream<Uint8Array<ArrayBuffer>>, take: (text: string) => void) => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) take(decoder.decode(chunk, { stream: true }));
  };
  const process: ServiceProcess = {
    url,
    smtpPort,
    key: ROOT_API_KEY,
    output: () => ({ stdout, stderr }),
    async start(over = {}, preload) {
      stdout = "";
      stderr = "";
      const started = Bun.spawn(
        ["bun", ...(preload === undefined ? [] : ["--preload", preload]), MAIN, "serve"],
        {
          cwd: folder,
          stdin: "ignore",
          stdout: "pipe",
          stderr: "pipe",
          env: {
            PATH: Bun.env.PATH ?? "",
            HOST: "127.0.0.1",
            PORT: String(port),
            SMTP_HOST: "127.0.0.1",
            SMTP_PORT: String(smtpPort),
            DATA_DIR: folder,
            SERVICE_DOMAIN: "mail.test",
            ROOT_API_KEY,
            ALLOW_PRIVATE_MX: "1",
            ALLOW_PRIVATE_WEBHOOKS: "1",
            ...env,
            ...over,
          },
        },
      );
      child = started;
      void drain(started.stdout, (text) => {
        stdout += text;
      });
      void drain(started.stderr, (text) => {
        stderr += text;
      });
      await ready(url, started, () => stderr);
    },
    async kill() {
      child?.kill("SIGKILL");
      await child?.exited;
    },
    reload: () => child?.kill("SIGHUP"),
    async terminate() {
      child?.kill("SIGTERM");
      return (await child?.exited) ?? 0;
    },
    exited: async () => (await child?.exited) ?? 0,
    async remove() {
      await process.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return process;
}

async function ready(url: string, child: Bun.Subprocess, said: () => string): Promise<void> {
  while (child.exitCode === null && child.signalCode === null) {
    const answer = await fetch(`${url}/readyz`).catch(() => null);
    if (answer?.status === 200) return;
    await Bun.sleep(READY_POLL_MS);
  }
  throw new Error(`the service ended before it was ready: ${said()}`);
}
