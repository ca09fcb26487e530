import { databaseWithSchema, type EmptyDatabase } from "./database.ts";
import { newDataFolder, removeFolder } from "./folder.ts";
import { freePort } from "./redis.ts";
import { type RoleProcess, startRole } from "./role-process.ts";

/** The service as a separate process that a test may kill, on files that outlive it. */
export interface ServiceProcess {
  url: string;
  smtpPort: number;
  key: string;
  /** Output since the last start. */
  output(): { stdout: string; stderr: string };
  /** Starts it on the same files and ports. Resolves when it is ready. */
  start(env?: Record<string, string>, preload?: string): Promise<void>;
  /** Kills it at once, as a power cut would. */
  kill(): Promise<void>;
  /** Sends SIGHUP, which makes it reload its certificate. */
  reload(): void;
  /** Sends SIGTERM; resolves with the exit code. */
  terminate(): Promise<number>;
  /** Resolves when it has ended by itself. */
  exited(): Promise<number>;
  /** Kills it if it runs, and deletes its files. */
  remove(): Promise<void>;
}

const ROOT_API_KEY = "test-root-key-0123456789-0123456789";
const READY_POLL_MS = 20;

/** A process that is not started yet. `env` overrides settings fit for a test. */
export function serviceProcess(env: Record<string, string>): ServiceProcess {
  const folder = newDataFolder("process");
  const [port, smtpPort] = [freePort(), freePort()];
  const url = `http://127.0.0.1:${port}`;
  const own = { PORT: String(port), SMTP_PORT: String(smtpPort), DATA_DIR: folder, ROOT_API_KEY };
  let child: RoleProcess | null = null;
  let database: EmptyDatabase | null = null;
  const process: ServiceProcess = {
    url,
    smtpPort,
    key: ROOT_API_KEY,
    output: () => child?.output() ?? { stdout: "", stderr: "" },
    async start(over = {}, preload) {
      child = null;
      if (env.DATABASE_URL === undefined) database ??= await databaseWithSchema(folder);
      child = await startRole({ ...own, ...database?.env, ...env, ...over }, preload);
      await ready(url, child);
    },
    kill: async () => child?.kill(),
    reload: () => child?.reload(),
    terminate: async () => (await child?.terminate()) ?? 0,
    exited: async () => (await child?.exited()) ?? 0,
    async remove() {
      await process.kill();
      await database?.stop();
      removeFolder(folder);
    },
  };
  return process;
}

/** Waits for readiness: a running service may not have reached Redis yet. */
async function ready(url: string, child: RoleProcess): Promise<void> {
  const ended = child.exited().then(() => "ended" as const);
  for (;;) {
    const answer = await fetch(`${url}/readyz`).catch(() => null);
    if (answer?.status === 200) return;
    if ((await Promise.race([ended, Bun.sleep(READY_POLL_MS)])) === "ended")
      throw new Error(`the service ended before it was ready: ${child.output().stderr}`);
  }
}
