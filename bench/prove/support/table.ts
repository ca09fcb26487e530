/** Options of a run, and its final table: the promise, the finding, and whether the goal holds. */
import { printMarkdown } from "../../support/inbound-table.ts";

/** One promise as a run found it. */
export interface Finding {
  what: string;
  /** The measured or counted value, as the table shows it. */
  found: string | number;
  /** The required value, in words or signs: `0`, `≤ 20`, `60 of 60`. */
  goal: string;
  holds: boolean;
}

/** Returns the value of `--name=…`; null if not given. */
export function option(name: string): string | null {
  const start = `--${name}=`;
  return process.argv.find((arg) => arg.startsWith(start))?.slice(start.length) ?? null;
}

/**
 * Returns the number in `--name=…`, or the fallback. Throws if it is not a number from 0 on, because a run must prove
 * something.
 */
export function numberOption(name: string, fallback: number): number {
  const text = option(name);
  if (text === null) return fallback;
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0) throw new Error(`--${name}=${text} is no number`);
  return value;
}

/** Returns whether `--name` was given. */
export function flag(name: string): boolean {
  return process.argv.includes(`--${name}`);
}

/** `--control`: the run plants a fault that it must find, and so must end with 1. */
export function isControl(): boolean {
  return flag("control");
}

/** A count that must be zero. */
export function none(what: string, found: number): Finding {
  return { what, found, goal: "0", holds: found === 0 };
}

/** A figure that must not exceed a limit. If it is not available (NaN), it does not hold. */
export function atMost(what: string, found: number, limit: number, unit = ""): Finding {
  return {
    what,
    found: `${round(found)}${unit}`,
    goal: `≤ ${round(limit)}${unit}`,
    holds: found <= limit,
  };
}

/** A figure that must reach a limit: if a run did too little, it proves nothing. */
export function atLeast(what: string, found: number, limit: number, unit = ""): Finding {
  return {
    what,
    found: `${round(found)}${unit}`,
    goal: `≥ ${round(limit)}${unit}`,
    holds: found >= limit,
  };
}

/** A count that must be the whole number. */
export function allOf(what: string, found: number, of: number): Finding {
  return { what, found: `${found} of ${of}`, goal: `${of} of ${of}`, holds: of > 0 && found === of };
}

/** A fact for the table, without a goal. */
export function fact(what: string, found: string | number): Finding {
  return { what, found: typeof found === "number" ? round(found) : found, goal: "", holds: true };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

/** Prints the findings as a Markdown table under a title. Returns true if all hold. */
export function printFindings(title: string, findings: readonly Finding[]): boolean {
  console.log(`## ${title}\n`);
  printMarkdown(
    ["", "found", "goal", "holds"],
    findings.map(({ what, found, goal, holds }) => [
      what,
      String(found),
      goal,
      goal === "" ? "" : holds ? "yes" : "NO",
    ]),
  );
  return findings.length > 0 && findings.every(({ holds }) => holds);
}

/** Prints the findings and ends the process: 0 if all hold, else 1. */
export function conclude(title: string, findings: readonly Finding[]): never {
  const held = printFindings(title, findings);
  console.log(held ? "The goal holds." : "The goal does NOT hold.");
  process.exit(held ? 0 : 1);
}

/** Returns the value below which `share` (0 to 1) of the values are; NaN if there are none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
