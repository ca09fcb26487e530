import { get } from "../api/client.ts";
import { ApiError } from "../api/error.ts";
import { type Resource, useResource } from "../api/resource.ts";
import type { Domain, Page, Setting } from "../api/types.ts";
import { accountWide, can } from "./session.ts";

/** Facts about the installation that only an account-wide key may read. Null: unknown. */
export interface Installation {
  serviceDomain: string | null;
  /** `capture`, `relay` or `mx`. */
  delivery: string | null;
}

const UNKNOWN: Installation = { serviceDomain: null, delivery: null };
/** The default of SERVICE_DOMAIN. */
const DEFAULT_DOMAIN = "postrider.localhost";

async function readInstallation(): Promise<Installation> {
  if (!accountWide.peek()) return UNKNOWN;
  try {
    const { data } = await get<{ data: Setting[] }>("/v1/settings", {}, { account: true });
    const value = (name: string) => data.find((setting) => setting.name === name)?.value ?? null;
    return { serviceDomain: value("SERVICE_DOMAIN") ?? DEFAULT_DOMAIN, delivery: value("DELIVERY") };
  } catch (thrown) {
    // Knowing these facts only makes some suggestions better.
    if (thrown instanceof ApiError) return UNKNOWN;
    throw thrown;
  }
}

/** Returns facts about the installation. */
export function useInstallation(): Resource<Installation> {
  return useResource("installation", readInstallation);
}

/** Most domains that a form offers. */
const OFFERED_DOMAINS = 100;

/** Returns the project's domains for forms that offer them. */
export function useDomains(): Resource<Domain[]> {
  return useResource("domains for forms", async () => {
    if (!can("domains:read")) return [];
    return (await get<Page<Domain>>("/v1/domains", { limit: OFFERED_DOMAINS })).data;
  });
}
