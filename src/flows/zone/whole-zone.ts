import type { WholeZone } from "../../net/zone/transfer.ts";
import { findServedDomain } from "../../store/domains/domains.ts";
import { delegatedZone } from "./delegated-zone.ts";
import { serviceRecords } from "./service-zone.ts";
import { startOfAuthority } from "./start-of-authority.ts";
import type { ZoneSettings } from "./zone-settings.ts";
import type { Store } from "../../store/engine/client.ts";

/**
 * Opens a zone that we hold, to copy or compare it. Nothing comes from a cache, because a copy must not be older than its
 * serial. Returns null if we hold no zone of that name.
 */
export async function openWholeZone(
  deps: Store,
  settings: ZoneSettings,
  origin: string,
): Promise<WholeZone | null> {
  if (origin === settings.serviceDomain) {
    const soa = await startOfAuthority(deps, settings, origin);
    return { soa, records: () => serviceRecords(deps, settings) };
  }
  const domain = await findServedDomain(deps.db, [origin]);
  if (domain === null) return null;
  const zone = await delegatedZone(deps, settings, domain);
  const soa = await zone.soa();
  return {
    soa,
    async *records() {
      yield zone.records;
      for (const { find } of zone.changing) yield await find();
    },
  };
}
