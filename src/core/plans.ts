/** Names of the built-in plans. The operator can add others (`PLAN_GOLD`). */
export const PLANS = ["free", "pro", "unlimited"] as const;
/** Names of the built-in trust tiers. The operator can add others (`TIER_TRIAL`). */
export const TRUST_TIERS = ["new", "basic", "trusted", "high", "unlimited"] as const;
