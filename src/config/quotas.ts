import type { QuotaLimits, Quotas } from "../core/quotas.ts";
import { listOf } from "./kinds.ts";
import type { Given } from "./settings.ts";

/** Reads the limits of each plan from the settings of all resources, which are without fault. */
export function quotasOf(given: Given): Quotas {
  const limits = (place: number): QuotaLimits => {
    const limit = (name: string): number | null => {
      const text = listOf(given.text(name) ?? "")[place] ?? "none";
      return text === "none" ? null : Number(text);
    };
    return {
      storedOctets: limit("QUOTA_STORED_OCTETS"),
      templates: limit("QUOTA_TEMPLATES"),
      webhooks: limit("QUOTA_WEBHOOKS"),
      inboxes: limit("QUOTA_INBOXES"),
      domains: limit("QUOTA_DOMAINS"),
      apiKeys: limit("QUOTA_API_KEYS"),
      contacts: limit("QUOTA_CONTACTS"),
      suppressions: limit("QUOTA_SUPPRESSIONS"),
    };
  };
  return { free: limits(0), pro: limits(1), unlimited: limits(2) };
}
