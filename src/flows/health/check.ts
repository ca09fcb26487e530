import { type Clock, within } from "../../core/clock.ts";

export type HealthStatus = "ok" | "warn" | "fail";

/** What a check has found, and how to put it right; no way is named where there is nothing to put right. */
export interface Finding {
  status: HealthStatus;
  message: string;
  fix?: string;
}

/** One thing to look at. What it throws is its finding: a failure, in the words of the error. */
export interface Check {
  name: string;
  run(): Finding | Promise<Finding>;
  /** What to do where it throws, or takes too long. */
  fix: string;
  /** Says nothing of its own where there is no database. */
  needsDatabase?: boolean;
  /** Holds the thread while it runs: it comes after the others, which it would make late, and takes the time it takes. */
  holds?: true;
}

/** A finding under the name of its check. */
export interface HealthLine extends Finding {
  name: string;
}

/** Time a check has, milliseconds. */
export const CHECK_LIMIT_MS = 5_000;
/** Checks under way at a time: each may ask a server. */
export const CHECKS_AT_ONCE = 16;

/** All is as it should be. */
export function ok(message: string): Finding {
  return { status: "ok", message };
}

/** The service runs, and something should be put right. */
export function warn(message: string, fix: string): Finding {
  return { status: "warn", message, fix };
}

/** Something does not work until it is put right. */
export function fail(message: string, fix: string): Finding {
  return { status: "fail", message, fix };
}

/** Runs the checks and gives their lines in the order of the checks. Never rejects. */
export async function runHealth(clock: Clock, checks: readonly Check[]): Promise<HealthLine[]> {
  const lines = new Map<Check, HealthLine>();
  const waiting = checks.filter(({ holds }) => holds !== true).values();
  const worker = async (): Promise<void> => {
    for (const check of waiting) lines.set(check, await lineOf(clock, check));
  };
  await Promise.all(Array.from({ length: CHECKS_AT_ONCE }, worker));
  for (const check of checks) if (check.holds === true) lines.set(check, await lineOf(clock, check));
  return checks.flatMap((check) => lines.get(check) ?? []);
}

async function lineOf(clock: Clock, check: Check): Promise<HealthLine> {
  const { name, fix } = check;
  const late = fail(`no answer within ${CHECK_LIMIT_MS / 1000} seconds`, fix);
  try {
    return { name, ...(await within(clock, CHECK_LIMIT_MS, finding(check), late)) };
  } catch (error) {
    return { name, ...fail(error instanceof Error ? error.message : String(error), fix) };
  }
}

async function finding(check: Check): Promise<Finding> {
  return check.run();
}

/** The worst of the lines; ok without any. */
export function worstOf(lines: readonly Pick<HealthLine, "status">[]): HealthStatus {
  const has = (status: HealthStatus) => lines.some((line) => line.status === status);
  if (has("fail")) return "fail";
  return has("warn") ? "warn" : "ok";
}
