import type { Store } from "../../store/engine/client.ts";
import type { KeyDeps } from "../records/keys.ts";
import type { DomainLookups } from "../records/lookups.ts";
import type { RecommendedDeps } from "../records/records.ts";
import type { IsCaptureDomain } from "./capture-domain.ts";

/** A name server of a zone, and the lookups at it alone. */
export interface ZoneServer {
  name: string;
  lookups: DomainLookups;
}

/** The services that register, show and check domains. */
export interface Checking extends Store, KeyDeps, RecommendedDeps {
  lookups: DomainLookups;
  /** Returns the name servers that hold a domain. Empty if they cannot be found. */
  findZoneServers: (domain: string) => Promise<readonly ZoneServer[]>;
  publicIps: readonly string[];
  /** Names of the secondary name servers. */
  secondaryNames: readonly string[];
  /** Delays between background checks; null for the default schedule. */
  recheckSeconds: readonly number[] | null;
  isCaptureDomain: IsCaptureDomain;
  /** True if sends may be from any address, because all mail is captured. */
  capturesAnyFrom: boolean;
}
