import { limitsOf, type Quotas } from "../../core/quotas.ts";
import { quotaExceeded } from "../../flows/quotas.ts";
import type { Statement } from "../../store/engine/client.ts";
import { NO_LIMIT, type ChangeLimit, limitChange, withinLimits } from "../../store/projects/holdings.ts";
import type { Project } from "../../store/projects/projects.ts";
import type { Route } from "../routing/route.ts";

/** Statements that hold a request to its project's plan. */
export interface Limits {
  /** For the write of the request itself. */
  own: Statement[];
  growing: ChangeLimit;
  /** For the write of an answer whose request writes nothing else. */
  within: Statement[];
  refuse: (error: unknown) => never;
}

/** Limits of account-level requests, which have no plan. If they add something, they check it themselves. */
const UNLIMITED: Limits = {
  own: [],
  growing: NO_LIMIT,
  within: [],
  refuse(error) {
    throw error;
  },
};

/**
 * Returns the limits of a request by its project's plan.
 * @param key its Idempotency-Key; an answer that is stored under it counts
 */
export function limitsFor(
  quotas: Quotas,
  { stores, evenFull }: Pick<Route, "stores" | "evenFull">,
  project: Project | null,
  key: string | null,
): Limits {
  if (project === null || evenFull === true) return UNLIMITED;
  const limits = limitsOf(quotas, project.plan);
  const within = withinLimits(project.id, ["storedOctets"], limits);
  const added = withinLimits(project.id, stores?.adds ?? [], limits);
  const isLimited = stores?.limitedBy !== "handler" && (stores !== undefined || key !== null);
  return {
    own: isLimited ? [...added, ...within] : [],
    growing: (change) => limitChange(project.id, limits.storedOctets, change),
    within,
    refuse: quotaExceeded(limits),
  };
}
