import type { Config } from "../../config.ts";
import type { Clock } from "../../core/time/clock.ts";
import type { Db } from "../../store/engine/client.ts";
import type { HostSettings } from "../certificates/domain-hosts.ts";

/** Dependencies of reading a zone. */
export interface ZoneDeps {
  db: Db;
  clock: Clock;
}

/** The settings that zones depend on. */
export type ZoneSettings = HostSettings & Pick<Config, "dnsSecondaries" | "dnsSecondaryNames">;
