/** A separate process that requests `/livez` all the time, so that the run's own work does not count. */
import { startChild } from "../../support/children.ts";

const EVERY_MS = 3;
const READY = "asking";

/** The probe as the run sees it. */
export interface LivezProbe {
  /** Forgets the waits so far. */
  forget(): void;
  /** The longest wait since, milliseconds. */
  worstMs(): number;
  stop(): Promise<void>;
}

/** Starts the probe; it writes each wait as a line. */
export async function startProbe(url: string, log: string): Promise<LivezProbe> {
  const child = await startChild([process.execPath, import.meta.path, url], { log, ready: READY });
  let seen = 0;
  const waits = (): string[] => child.output().split("\n");
  return {
    forget() {
      seen = waits().length;
    },
    worstMs: () =>
      Math.max(
        0,
        ...waits()
          .slice(seen - 1)
          .map((line) => Number(line) || 0),
      ),
    stop: () => child.end(),
  };
}

if (import.meta.main) {
  const url = `${process.argv[2]}/livez`;
  console.log(READY);
  for (;;) {
    const begun = performance.now();
    await (await fetch(url)).text();
    console.log((performance.now() - begun).toFixed(2));
    await Bun.sleep(EVERY_MS);
  }
}
