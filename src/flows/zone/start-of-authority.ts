import { cacheFor, type Clock, inTime, within } from "../../core/time/clock.ts";
import type { SoaRecord } from "../../net/zone/answer.ts";
import { zoneSerial } from "../../store/domains/zones.ts";
import { nsHost, SOA_MAILBOX } from "../../core/own-names.ts";
import type { ZoneSettings } from "./zone-settings.ts";
import type { Store } from "../../store/engine/client.ts";

const SOA_TTL_SECONDS = 3600;
/** TTL of negative answers (RFC 2308 §5). */
const NEGATIVE_TTL_SECONDS = 300;
/** Timers for secondaries (RFC 1912 §2.2). */
const REFRESH_SECONDS = 1800;
const RETRY_SECONDS = 900;
const EXPIRE_SECONDS = 1_209_600;
/** Time for which the serial of the service's zone is kept. */
const SERIAL_FRESH_MS = 1000;
/** Time that an answer waits for the serial. After that it has the last one. */
const SERIAL_WAIT_MS = 500;
const SERIAL_TIMEOUT_MS = 3000;

/**
 * Makes a zone's SOA record (RFC 1035 §3.3.13). With secondaries, the serial is that of the zone's version, the same in all
 * processes. Without, it is the time, which rises with every change without being stored.
 */
export async function startOfAuthority(
  { db, clock }: Store,
  settings: ZoneSettings,
  zone: string,
): Promise<SoaRecord> {
  const stored = settings.dnsSecondaries.length === 0 ? 0 : await zoneSerial(db, zone);
  return soaRecord(settings, zone, serialAt(clock, stored));
}

/** Makes the function that returns the SOA of the service's zone. If the database does not answer, it has the last serial. */
export function ownStartOfAuthority({ db, clock }: Store, settings: ZoneSettings): () => Promise<SoaRecord> {
  const zone = settings.serviceDomain;
  let known = 0;
  const refresh = cacheFor(clock, SERIAL_FRESH_MS, async () => {
    known = await inTime(clock, SERIAL_TIMEOUT_MS, zoneSerial(db, zone), "the database does not answer");
  });
  return async () => {
    if (settings.dnsSecondaries.length > 0)
      await within(clock, SERIAL_WAIT_MS, refresh(), undefined).catch(() => undefined);
    return soaRecord(settings, zone, serialAt(clock, known));
  };
}

/** The first version gets the time at which it is made. Answers before it have a smaller serial. */
function serialAt(clock: Clock, stored: number): number {
  return stored > 0 ? stored : Math.floor(clock.now() / 1000) - 1;
}

function soaRecord({ serviceDomain }: ZoneSettings, zone: string, serial: number): SoaRecord {
  return {
    name: zone,
    ttl: SOA_TTL_SECONDS,
    type: "SOA",
    data: {
      mname: nsHost(serviceDomain),
      rname: `${SOA_MAILBOX}.${serviceDomain}`,
      serial: serial >>> 0,
      refresh: REFRESH_SECONDS,
      retry: RETRY_SECONDS,
      expire: EXPIRE_SECONDS,
      minimum: NEGATIVE_TTL_SECONDS,
    },
  };
}
