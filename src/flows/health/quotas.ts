import {
  limitsOf,
  NEAR_QUOTA,
  type QuotaLimits,
  type Quotas,
  type Resource,
  RESOURCES,
} from "../../core/quotas.ts";
import type { Db } from "../../store/engine/client.ts";
import { type Holder, holdersNear } from "../../store/projects/holdings.ts";
import { type Check, type Finding, ok, warn } from "./check.ts";

/** Maximum number of projects that the finding names. */
const MAX_NAMED = 5;

/** A project that has nearly used up a resource. */
export interface NearQuota {
  accountId: string;
  senderId: string;
  /** External id. */
  project: string;
  resource: Resource;
  used: number;
  limit: number;
}

/** Warns about projects that are close to a plan limit. */
export function quotaCheck({ db, quotas }: { db: () => Db; quotas: Quotas }): Check {
  return {
    name: "quotas",
    fix: "Check that the database is reachable.",
    needsDatabase: true,
    run: async () => findingOf(await nearQuotas(db(), quotas, MAX_NAMED + 1)),
  };
}

/** Returns the resources that projects have nearly used up, for at most `projects` projects per plan. */
export async function nearQuotas(db: Db, quotas: Quotas, projects: number): Promise<NearQuota[]> {
  const found = await Promise.all([
    holdersNear(db, { only: "free" }, nearBounds(quotas.free), projects),
    holdersNear(db, { only: "unlimited" }, nearBounds(quotas.unlimited), projects),
    holdersNear(db, { except: ["free", "unlimited"] }, nearBounds(quotas.pro), projects),
  ]);
  return found.flat().flatMap((holder) => nearOf(holder, limitsOf(quotas, holder.plan)));
}

/** Returns the use from which on a resource counts as nearly used up. */
function nearBounds(limits: QuotaLimits): QuotaLimits {
  const bounds: Record<Resource, number | null> = { ...limits };
  for (const resource of RESOURCES) bounds[resource] = nearBound(limits[resource]);
  return bounds;
}

/** Returns at least one, so that a limit of 0 does not warn. */
function nearBound(limit: number | null): number | null {
  return limit === null ? null : Math.max(1, Math.ceil(limit * NEAR_QUOTA));
}

function nearOf(holder: Holder, limits: QuotaLimits): NearQuota[] {
  return RESOURCES.flatMap((resource) => {
    const [used, limit] = [holder[resource], limits[resource]];
    const bound = nearBound(limit);
    if (limit === null || bound === null || used < bound) return [];
    const { accountId, senderId, externalId: project } = holder;
    return [{ accountId, senderId, project, resource, used, limit }];
  });
}

function findingOf(near: readonly NearQuota[]): Finding {
  if (near.length === 0) return ok("No project is near a quota.");
  const named = near.slice(0, MAX_NAMED).map(({ project, resource, used, limit }) => {
    return `${project} ${resource} ${used} of ${limit}`;
  });
  const more = near.length > MAX_NAMED ? "; more" : "";
  return warn(
    `Projects near a quota: ${named.join("; ")}${more}.`,
    "Ask them to delete data, or give them another plan (PATCH /v1/senders/{id}). The QUOTA_ settings hold the limits of each plan.",
  );
}
