import type { Config } from "../../config.ts";
import type { HostSettings } from "../certificates/domain-hosts.ts";

/** The settings that zones depend on. */
export type ZoneSettings = HostSettings & Pick<Config, "dnsSecondaries" | "dnsSecondaryNames">;
