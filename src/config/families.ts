import type { PLANS, TRUST_TIERS } from "../core/plans.ts";

/** Settings whose variables carry a name of the operator's choice: plans (`PLAN_GOLD`) and trust tiers (`TIER_TRIAL`). */

/** A request rate: tokens that a bucket gets per second, and the most it holds. */
export interface Plan {
  perSecond: number;
  burst: number;
}

/** Members by name; null is unlimited. */
export type Family<Value> = Readonly<Record<string, Value | null>>;

const DEFAULT_PLANS: Readonly<Record<(typeof PLANS)[number], Plan | null>> = {
  free: { perSecond: 10, burst: 20 },
  pro: { perSecond: 100, burst: 200 },
  unlimited: null,
};

const DEFAULT_TIERS: Readonly<Record<(typeof TRUST_TIERS)[number], number | null>> = {
  new: 200,
  basic: 2000,
  trusted: 20_000,
  high: 200_000,
  unlimited: null,
};

type Env = Readonly<Record<string, string | undefined>>;

/** Reads the plans: the defaults, overridden by every `PLAN_<NAME>`. */
export function readPlans(env: Env, problems: string[]): Family<Plan> {
  return readFamily(env, "PLAN_", DEFAULT_PLANS, readPlan, "rate/burst", problems);
}

/** Reads the trust tiers: the defaults, overridden by every `TIER_<NAME>`. */
export function readTiers(env: Env, problems: string[]): Family<number> {
  return readFamily(env, "TIER_", DEFAULT_TIERS, readTier, "a number of recipients", problems);
}

function readFamily<Value>(
  env: Env,
  prefix: string,
  defaults: Family<Value>,
  read: (text: string) => Value | undefined,
  form: string,
  problems: string[],
): Family<Value> {
  const family: Record<string, Value | null> = { ...defaults };
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith(prefix) || text === undefined || text === "") continue;
    const value = text === "unlimited" ? null : read(text);
    if (name === prefix) problems.push(`${name} has no name: add it after ${prefix}`);
    else if (value === undefined)
      problems.push(`${name}=${JSON.stringify(text)} must be ${form} or unlimited`);
    else family[name.slice(prefix.length).toLowerCase()] = value;
  }
  return family;
}

function readPlan(text: string): Plan | undefined {
  const match = /^(\d{1,7})\/(\d{1,7})$/.exec(text);
  const plan = { perSecond: Number(match?.[1]), burst: Number(match?.[2]) };
  return plan.perSecond > 0 && plan.burst > 0 ? plan : undefined;
}

function readTier(text: string): number | undefined {
  return /^\d{1,12}$/.test(text) ? Number(text) : undefined;
}
