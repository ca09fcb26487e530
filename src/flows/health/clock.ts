import type { Clock } from "../../core/clock.ts";
import { type Check, fail, type Finding, ok, warn } from "./check.ts";

/** Differences that matter, milliseconds: a few seconds show; after minutes others refuse what we have signed. */
const WARN_MS = 5_000;
const FAIL_MS = 60_000;

/** Another clock: whose it is, and what it says, milliseconds. */
export interface OtherClock {
  name: string;
  read: () => Promise<number>;
}

/** This machine's clock beside others. There is none to ask unless a server is part of the installation, or is named. */
export function clockCheck(clock: Clock, others: readonly OtherClock[]): Check {
  return {
    name: "clock",
    fix: "see that the server whose clock is asked answers",
    async run() {
      if (others.length === 0)
        return ok("not compared: no server has a clock to compare it with (doctor --clock URL names one)");
      const findings = await Promise.all(others.map((other) => compare(clock, other)));
      const worst = findings.toSorted((a, b) => b.off - a.off)[0];
      return findingOf(worst?.off ?? 0, findings.map(({ text }) => text).join(", "));
    },
  };
}

/** The other's answer belongs to some moment between question and answer: within that time nothing can be said. */
async function compare(clock: Clock, { name, read }: OtherClock): Promise<{ off: number; text: string }> {
  const asked = clock.now();
  const other = await read();
  const answered = clock.now();
  const off = Math.max(0, asked - other, other - answered);
  const sign = other > answered ? "behind" : "ahead of";
  const text =
    off < 1000 ? `the same as that of ${name}` : `${(off / 1000).toFixed(1)} s ${sign} that of ${name}`;
  return { off, text };
}

function findingOf(off: number, message: string): Finding {
  const fix = "let chrony or systemd-timesyncd set the clocks";
  if (off >= FAIL_MS) return fail(message, fix);
  return off >= WARN_MS ? warn(message, fix) : ok(message);
}
