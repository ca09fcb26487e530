import { delegatedZones } from "../flows/zone/delegated-zone.ts";
import { openNotices, openVersions } from "../flows/zone/secondaries.ts";
import { openZone } from "../flows/zone/service-zone.ts";
import { openWholeZone } from "../flows/zone/whole-zone.ts";
import { log } from "../log.ts";
import { startZoneServer } from "../net/zone/server.ts";
import type { Services } from "./services.ts";
import { startLoop } from "./process/loop.ts";

/** Pause between two checks for changed zones and due notices. */
const SECONDARIES_PAUSE_MS = 1000;

/** A running name server. */
export interface NameServer {
  readonly port: number;
  stop(): Promise<void>;
}

/**
 * Starts the name server of the service's zone and of delegated domains, and tells secondaries of changes; null if DNS_PORT
 * is not set. Rejects if the port cannot be bound.
 */
export async function openNameServer({ config, clock, db, metrics }: Services): Promise<NameServer | null> {
  if (config.dnsPort === null) return null;
  if (config.publicIps.length === 0)
    log("net").warning("PUBLIC_IPS is not set: ns. and mx. have no addresses, and spf. names no sender");
  const deps = { db, clock };
  const zone = await openZone(deps, config);
  const transfers = {
    keys: config.dnsTsigKeys,
    secondaries: config.dnsSecondaries,
    open: (origin: string) => openWholeZone(deps, config, origin),
  };
  const server = await startZoneServer(
    { clock, log: log("net"), zone, findZone: delegatedZones(deps, config), transfers },
    { hosts: config.dnsHost, port: config.dnsPort },
  );
  const chores = [
    { name: "zones", turn: openVersions(deps, config) },
    { name: "zone-notices", turn: openNotices(deps, config) },
  ];
  const loops = (config.dnsSecondaries.length === 0 ? [] : chores).map((chore) =>
    startLoop({ clock, failures: metrics.turnFailures }, SECONDARIES_PAUSE_MS, chore),
  );
  return {
    port: server.port,
    async stop() {
      server.stop();
      await Promise.all(loops.map((loop) => loop.stop()));
    },
  };
}
