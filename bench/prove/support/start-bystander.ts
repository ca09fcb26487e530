import { join } from "node:path";
import type { BystanderOptions, BystanderTimes } from "./bystander.ts";

/** A project that has no part in a run. */
export interface Bystander {
  /** Its times since the last look. */
  look(): Promise<BystanderTimes>;
  /** Ends its requests; resolves with its last times after it has all answers. */
  stop(): Promise<BystanderTimes>;
}

/** Starts its process, which ends with this one. */
export function startBystander(options: BystanderOptions): Bystander {
  let heard: (times: BystanderTimes) => void = () => undefined;
  const child = Bun.spawn(
    [process.execPath, join(import.meta.dir, "bystander.ts"), JSON.stringify(options)],
    {
      stdin: "ignore",
      stdout: "inherit",
      stderr: "inherit",
      ipc: (times: BystanderTimes) => heard(times),
    },
  );
  process.on("exit", () => child.kill("SIGKILL"));
  const ask = (order: "look" | "stop"): Promise<BystanderTimes> =>
    new Promise((resolve, reject) => {
      heard = resolve;
      void child.exited.then(() => reject(new Error("the bystander has ended")));
      child.send(order);
    });
  return { look: () => ask("look"), stop: () => ask("stop") };
}
