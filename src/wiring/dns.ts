import type { Config } from "../config.ts";
import type { Clock } from "../core/time/clock.ts";
import { delegatedZones } from "../flows/zone/delegated-zone.ts";
import { openZone } from "../flows/zone/service-zone.ts";
import { log } from "../log.ts";
import { startZoneServer, type ZoneServer } from "../net/zone/server.ts";
import type { Db } from "../store/engine/client.ts";

export interface NameServerDeps {
  config: Config;
  clock: Clock;
  db: Db;
}

/** Starts the name server of the service's zone and of delegated domains; null if DNS_PORT is not set. Rejects if the port cannot be bound. */
export async function openNameServer({ config, clock, db }: NameServerDeps): Promise<ZoneServer | null> {
  if (config.dnsPort === null) return null;
  if (config.publicIps.length === 0)
    log("net").warning("PUBLIC_IPS is not set: ns. and mx. have no addresses, and spf. names nobody");
  const zone = await openZone({ db, clock }, config);
  const serving = { hosts: config.dnsHost, port: config.dnsPort };
  return startZoneServer(
    { clock, log: log("net"), zone, findZone: delegatedZones({ db, clock }, config) },
    serving,
  );
}
