import type { Clock } from "../../core/time/clock.ts";
import type { Db } from "../../store/engine/client.ts";
import { countNearSuspension, type ReputationLimits } from "../../store/projects/reputation.ts";
import { type Check, ok, warn } from "./check.ts";

export interface ReputationParts {
  db: () => Db;
  clock: Clock;
  limits: ReputationLimits;
}

/** Warns if projects are halfway to a suspension. It names none, because every account may read it. */
export function reputationCheck({ db, clock, limits }: ReputationParts): Check {
  return {
    name: "reputation",
    needsDatabase: true,
    fix: "Check that the database is reachable.",
    async run() {
      const near = await countNearSuspension(db(), limits, clock.now());
      if (near === 0) return ok("No project is near suspension.");
      const message = `${near} ${near === 1 ? "project is" : "projects are"} near suspension for bounces or complaints.`;
      return warn(
        message,
        "Search the log for `sender near suspension`, and read `/v1/stats` of that project.",
      );
    },
  };
}
