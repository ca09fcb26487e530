import { AppError } from "./errors.ts";

/** Resources that a plan limits, as the API names them. */
export const RESOURCES = [
  "storedOctets",
  "templates",
  "webhooks",
  "inboxes",
  "domains",
  "apiKeys",
  "contacts",
  "suppressions",
] as const;
export type Resource =
  | ("storedOctets" | "templates" | "webhooks" | "inboxes" | "domains")
  | ("apiKeys" | "contacts" | "suppressions");

/** The limit of each resource. Null: there is no limit. */
export type QuotaLimits = Readonly<Record<Resource, number | null>>;

/** The plans that have quota settings, in their order. */
export const QUOTA_PLANS = ["free", "pro", "unlimited"] as const;
export type Quotas = Readonly<Record<(typeof QUOTA_PLANS)[number], QuotaLimits>>;

/** Share of a limit above which the operator is warned. */
export const NEAR_QUOTA = 0.9;

/** Returns the limits of a plan. If the operator made the plan, it has the limits of `pro`. */
export function limitsOf(quotas: Quotas, plan: string): QuotaLimits {
  return plan === "free" || plan === "unlimited" ? quotas[plan] : quotas.pro;
}

const NAMES: Readonly<Record<Resource, string>> = {
  storedOctets: "stored octets",
  templates: "templates",
  webhooks: "webhooks",
  inboxes: "inboxes",
  domains: "domains",
  apiKeys: "API keys",
  contacts: "contacts",
  suppressions: "suppressions",
};

/** Returns the 403 for exceeding the quota of a resource. */
export function overQuota(resource: Resource, limit: number | null): AppError {
  const most = limit === null ? "" : ` of ${limit}`;
  return new AppError("permission_error", `The plan's quota${most} ${NAMES[resource]} is used up.`, {
    code: "quota_exceeded",
    param: resource,
  });
}
