import { get } from "../../api/client.ts";
import { type Resource, useResource } from "../../api/resource.ts";
import type { Project, Setting } from "../../api/types.ts";
import { Dot } from "../../components/status.tsx";
import { can } from "../../state/session.ts";

/** Tells if a project may send. */
export function ProjectDot({ project }: { project: Project }) {
  return project.suspendedAt === null ? (
    <Dot tone="good" word="Active" title="It may send." />
  ) : (
    <Dot tone="bad" word="Suspended" title="Its sends are refused." />
  );
}

/** Names of the built-in plans and trust tiers, for keys that may not read the settings. */
const BUILT_IN = {
  plans: ["free", "pro", "unlimited"],
  tiers: ["new", "basic", "trusted", "high", "unlimited"],
};

/** The plans and trust tiers of this service. */
export interface Levels {
  plans: string[];
  tiers: string[];
}

/** Reads the plans and trust tiers. The operator's own ones are settings, such as `PLAN_GOLD` and `TIER_TRIAL`. */
export function useLevels(): Resource<Levels> {
  return useResource("plans and tiers", async () => {
    if (!can("metrics:read")) return BUILT_IN;
    const { data } = await get<{ data: Setting[] }>("/v1/settings", {}, { account: true });
    const named = (prefix: string) =>
      data.flatMap(({ name }) => (name.startsWith(prefix) ? [name.slice(prefix.length).toLowerCase()] : []));
    return { plans: named("PLAN_"), tiers: named("TIER_") };
  });
}
