import { join } from "node:path";

/** `cut`: closes what is open and refuses what comes. `stalled`: keeps connections open and passes nothing on. */
export type LinkState = "whole" | "cut" | "stalled";

/** A TCP proxy on 127.0.0.1 that simulates a long or a broken line to a server. */
export interface SlowLink {
  port: number;
  /** Resolves when the state is in force. Data in transit during a stall is lost with its connection. */
  become(state: LinkState): Promise<void>;
  stop(): void;
}

/** Target of a link. */
export interface LinkOptions {
  host: string;
  port: number;
  /**
   * Time that is added to a question with its answer, milliseconds. Below 2, the line waits in one direction only; below 1,
   * what the proxy itself takes (some 0.2 ms) is all.
   */
  roundTripMs: number;
}

/** Starts a link, as a separate process: libSQL blocks the event loop while it opens a replica over it. */
export async function startSlowLink(options: LinkOptions): Promise<SlowLink> {
  const { promise: listening, resolve } = Promise.withResolvers<number>();
  const waiting: (() => void)[] = [];
  const command = [process.execPath, join(import.meta.dir, "slow-link-main.ts"), JSON.stringify(options)];
  const child = Bun.spawn(command, {
    stdio: ["ignore", "inherit", "inherit"],
    ipc(message: { port: number } | { state: LinkState }) {
      if ("port" in message) resolve(message.port);
      else waiting.shift()?.();
    },
  });
  const stop = (): void => child.kill("SIGKILL");
  process.on("exit", stop);
  return {
    port: await listening,
    become(state) {
      child.send(state);
      return new Promise((done) => waiting.push(done));
    },
    stop() {
      process.off("exit", stop);
      stop();
    },
  };
}
