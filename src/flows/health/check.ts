import { MINUTE_MS } from "../../core/time/units.ts";
import { type Clock, within, cacheFor } from "../../core/time/clock.ts";

export type HealthStatus = "ok" | "warn" | "fail";

/** The result of a check. Operators read `message` and `fix`, so each is a plain sentence. */
export interface Finding {
  status: HealthStatus;
  message: string;
  /** How to fix it; missing if nothing is wrong. */
  fix?: string;
  /** A request that fixes it, once the operator has done the rest. */
  action?: Action;
}

/** A POST to the API without a body, and the words of its button. */
export interface Action {
  label: string;
  path: string;
}

/** One check of the installation. If it throws, its finding is a failure with the message of the error. */
export interface Check {
  name: string;
  run(): Finding | Promise<Finding>;
  /** Advice if the check throws or takes too long. */
  fix: string;
  /** Left out if there is no database. */
  needsDatabase?: boolean;
  /** Blocks the thread while it runs, so it runs after the other checks. */
  holds?: true;
}

export interface HealthLine extends Finding {
  name: string;
}

/** Time limit of a check, milliseconds. */
export const CHECK_LIMIT_MS = 5_000;
/** Checks that run at once, because each may query a server. */
export const CHECKS_AT_ONCE = 16;

/** Returns a finding without a fault. */
export function ok(message: string): Finding {
  return { status: "ok", message };
}

/** Returns a finding for a fault with which the service still works. */
export function warn(message: string, fix: string): Finding {
  return { status: "warn", message, fix };
}

/** Returns a finding for something that does not work until it is fixed. */
export function fail(message: string, fix: string, action?: Action): Finding {
  return { status: "fail", message, fix, ...(action === undefined ? {} : { action }) };
}

/** Runs the checks and returns their lines in the same order. Never rejects. */
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
  const late = fail(`There was no answer within ${CHECK_LIMIT_MS / 1000} seconds.`, fix);
  try {
    return { name, ...(await within(clock, CHECK_LIMIT_MS, finding(check), late)) };
  } catch (error) {
    return { name, ...fail(error instanceof Error ? error.message : String(error), fix) };
  }
}

async function finding(check: Check): Promise<Finding> {
  return check.run();
}

/** Returns the worst status of the lines; `ok` if there are none. */
export function worstOf(lines: readonly Pick<HealthLine, "status">[]): HealthStatus {
  const has = (status: HealthStatus) => lines.some((line) => line.status === status);
  if (has("fail")) return "fail";
  return has("warn") ? "warn" : "ok";
}

/** Time for which findings are cached, milliseconds. */
export const HEALTH_FRESH_MS = 10_000;

/** The findings of one run of the checks. */
export interface Health {
  status: HealthStatus;
  checks: readonly HealthLine[];
  /** Milliseconds since the epoch. */
  checkedAt: number;
}

/** Time for which findings about DNS are cached, milliseconds. */
export const DNS_FRESH_MS = 10 * MINUTE_MS;

/** Runs the checks at most once in that time. In between, callers get the last result or wait for the running one. */
export function cachedHealth(
  clock: Clock,
  checks: readonly Check[],
  freshMs = HEALTH_FRESH_MS,
): () => Promise<Health> {
  return cacheFor(clock, freshMs, (now) => look(clock, checks, now));
}

async function look(clock: Clock, checks: readonly Check[], checkedAt: number): Promise<Health> {
  const lines = await runHealth(clock, checks);
  return { status: worstOf(lines), checks: lines, checkedAt };
}
