import type { Clock } from "../../core/time/clock.ts";
import { type Check, fail, type Finding, ok, warn } from "./check.ts";

/** Differences to report, milliseconds. If the clock is minutes off, receivers refuse our signatures. */
const WARN_MS = 5_000;
const FAIL_MS = 60_000;

/** The clock of another server. `read` returns milliseconds since the epoch. */
export interface OtherClock {
  name: string;
  read: () => Promise<number>;
}

/** Compares this machine's clock with those of the installation's servers, and of a server that the operator names. */
export function clockCheck(clock: Clock, others: readonly OtherClock[]): Check {
  return {
    name: "clock",
    fix: "Check that the server to compare with is reachable.",
    async run() {
      if (others.length === 0)
        return ok(
          "The clock was not compared, because no server with a clock is known. Name one with doctor --clock URL.",
        );
      const findings = await Promise.all(others.map((other) => compare(clock, other)));
      const worst = findings.toSorted((a, b) => b.off - a.off)[0];
      return findingOf(worst?.off ?? 0, findings.map(({ text }) => text).join(", "));
    },
  };
}

/** Compares two clocks. The other was read at some moment between request and answer, so a smaller difference counts as none. */
async function compare(clock: Clock, { name, read }: OtherClock): Promise<{ off: number; text: string }> {
  const before = clock.now();
  const other = await read();
  const after = clock.now();
  const off = Math.max(0, before - other, other - after);
  const sign = other > after ? "behind" : "ahead of";
  const text = off < 1000 ? `the same as ${name}` : `${(off / 1000).toFixed(1)} s ${sign} ${name}`;
  return { off, text };
}

function findingOf(off: number, differences: string): Finding {
  const message = `The clock of this machine is ${differences}.`;
  const fix = "Let chrony or systemd-timesyncd set the clocks.";
  if (off >= FAIL_MS) return fail(message, fix);
  return off >= WARN_MS ? warn(message, fix) : ok(message);
}
