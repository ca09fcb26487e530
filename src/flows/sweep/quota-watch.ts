import { atMostEvery, type Clock } from "../../core/time/clock.ts";
import type { Quotas } from "../../core/quotas.ts";
import { MINUTE_MS } from "../../core/time/units.ts";
import { log } from "../../log.ts";
import type { Db } from "../../store/engine/client.ts";
import { nearQuotas } from "../health/quotas.ts";

/** Pause between two checks, milliseconds. Each reads a row per project. */
export const QUOTA_PAUSE_MS = MINUTE_MS;
/** Maximum number of projects of a plan that one check reports. */
const MAX_PROJECTS = 100;

/** Makes the chore that warns in the log once when a project nears a quota, and again if it nears it after it left. */
export function watchQuotas({ db, clock, quotas }: { db: Db; clock: Clock; quotas: Quotas }) {
  let reported = new Set<string>();
  const isTime = atMostEvery(clock, QUOTA_PAUSE_MS);
  return async (): Promise<void> => {
    if (!isTime()) return;
    const near = await nearQuotas(db, quotas, MAX_PROJECTS);
    for (const { project, resource, used, limit } of near)
      if (!reported.has(`${project} ${resource}`))
        log("quota").warn("a project is near a quota", { project, resource, used, limit });
    reported = new Set(near.map(({ project, resource }) => `${project} ${resource}`));
  };
}
