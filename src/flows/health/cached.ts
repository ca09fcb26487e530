import { type Clock, readFresh } from "../../core/clock.ts";
import { type Check, type HealthLine, type HealthStatus, runHealth, worstOf } from "./check.ts";

/** Time for which findings are good, milliseconds: however often they are asked for, the parts are not. */
export const HEALTH_FRESH_MS = 10_000;

/** The findings of one look. */
export interface Health {
  status: HealthStatus;
  checks: readonly HealthLine[];
  /** Milliseconds since the epoch. */
  checkedAt: number;
}

/** Looks at most every ten seconds; who asks meanwhile gets what was found, or waits for the look under way. */
export function cachedHealth(clock: Clock, checks: readonly Check[]): () => Promise<Health> {
  return readFresh(clock, HEALTH_FRESH_MS, (now) => look(clock, checks, now));
}

async function look(clock: Clock, checks: readonly Check[], checkedAt: number): Promise<Health> {
  const lines = await runHealth(clock, checks);
  return { status: worstOf(lines), checks: lines, checkedAt };
}
