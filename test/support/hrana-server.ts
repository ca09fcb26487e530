import { join } from "node:path";
import { lastingDataFolder, removeFolder } from "./folder.ts";
import type { Order, Report, ServerSettings, Trouble } from "./hrana-server-main.ts";
import { freePort } from "./redis.ts";

/**
 * A primary: a database server that speaks Hrana over HTTP, as a separate process, on a file that outlives it.
 */
export interface Primary {
  url: string;
  /** Adds an empty database of that name, at its own URL, until the server restarts. */
  open(name: string): Promise<string>;
  /** Folder of its file, which may also hold replicas. */
  folder: string;
  /** Requests carried out so far, by kind. A kill loses the count. */
  counts(): Promise<Record<string, number>>;
  /** Resolves when it is in force. */
  make(trouble: Trouble): Promise<void>;
  /** Kills it at once, as a power cut would. */
  kill(): Promise<void>;
  /** Starts it again on the same port. */
  restart(): Promise<void>;
  /** Freezes the server: connections stay open and get no answers. */
  freeze(): void;
  thaw(): void;
  stop(): Promise<void>;
}

const MAIN = join(import.meta.dir, "hrana-server-main.ts");
/** Words errors as sqld does. */
const STREAM_IDLE_MS = 10_000;

/** Starts a primary on an empty file. */
export async function startPrimary(given: Partial<ServerSettings> = {}): Promise<Primary> {
  // Many files share it for their databases, so its process ends with ours.
  const folder = lastingDataFolder("primary");
  const settings: ServerSettings = {
    folder,
    port: freePort(),
    token: null,
    idleMs: STREAM_IDLE_MS,
    fineCodes: false,
    sync: "http",
    ...given,
  };
  const ports: ((port: number) => void)[] = [];
  const waiting: ((counts: Record<string, number>) => void)[] = [];
  const launch = async (): Promise<Bun.Subprocess> => {
    const { promise: listening, resolve } = Promise.withResolvers<unknown>();
    ports.push(resolve);
    const child = Bun.spawn([process.execPath, MAIN, JSON.stringify(settings)], {
      stdio: ["ignore", "inherit", "inherit"],
      ipc(message: Report) {
        // Orders and reports are handled in the order in which they were sent.
        if ("port" in message) ports.shift()?.(message.port);
        else waiting.shift()?.(message.counts);
      },
    });
    await Promise.race([
      listening,
      child.exited.then((code) => {
        throw new Error(`the primary ended with ${code}`);
      }),
    ]);
    return child;
  };
  let child = await launch();
  const killNow = (): void => child.kill("SIGKILL");
  process.on("exit", killNow);
  const kill = async (): Promise<void> => {
    killNow();
    await child.exited;
  };
  const counts = (): Promise<Record<string, number>> => {
    child.send({ counts: true } satisfies Order);
    return new Promise((resolve) => waiting.push(resolve));
  };
  return {
    url: `http://127.0.0.1:${settings.port}`,
    folder,
    async open(name) {
      const { promise, resolve } = Promise.withResolvers<number>();
      ports.push(resolve);
      child.send({ open: name } satisfies Order);
      return `http://127.0.0.1:${await promise}`;
    },
    counts,
    async make(trouble) {
      child.send({ trouble } satisfies Order);
      // Orders are handled in order, so the answer to this one means that the other was handled.
      await counts();
    },
    kill,
    async restart() {
      await kill();
      child = await launch();
    },
    freeze: () => child.kill("SIGSTOP"),
    thaw: () => child.kill("SIGCONT"),
    async stop() {
      await kill();
      process.off("exit", killNow);
      removeFolder(folder);
    },
  };
}
