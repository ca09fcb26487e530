import type { Clock } from "../../core/time/clock.ts";
import { exchange } from "../../net/dns/exchange.ts";
import type { Secondary } from "../../net/zone/transfer.ts";
import type { Db } from "../../store/engine/client.ts";
import { failedNotices, zoneSerial } from "../../store/domains/zones.ts";
import { secondaryName } from "../zone/secondaries.ts";
import type { ZoneSettings } from "../zone/zone-settings.ts";
import { type Check, fail, type Finding, ok, warn } from "./check.ts";

/** Time for an answer. A check asks by UDP, and once more by TCP. */
const ANSWER_MS = 2000;
/** Time in which a secondary has copied a new version, seconds. */
const COPY_SECONDS = 60;

export interface SecondaryParts {
  db: () => Db;
  clock: Clock;
  settings: ZoneSettings;
}

/** Checks, without a query, that each secondary has acknowledged our notices. */
export function noticeChecks({ db, settings }: Omit<SecondaryParts, "clock">): Check[] {
  return settings.dnsSecondaries.map((secondary) => ({
    name: `notices to ${secondaryName(secondary)}`,
    run: async () => {
      const failed = await failedNotices(db(), secondaryName(secondary));
      if (failed === null) return ok("All notices of changed zones are acknowledged.");
      const { count, zone, error } = failed;
      return warn(
        `NOTIFY is not acknowledged for ${count === 1 ? "a zone" : `${count} zones`}. For ${zone}, ${error}.`,
        `Add each zone there, delegated domains too. ${allowing(secondary)}`,
      );
    },
    fix: "Check that the database is reachable.",
    needsDatabase: true,
  }));
}

function allowing({ keyName }: Secondary): string {
  return `In its configuration, allow NOTIFY from PUBLIC_IPS and transfers with the key ${keyName}, and name our name server as its primary. Forward TCP port 53 to DNS_PORT.`;
}

/** Checks that each secondary serves the latest version of the service's zone. */
export function secondaryChecks(parts: SecondaryParts): Check[] {
  return parts.settings.dnsSecondaries.map((secondary) => ({
    name: `secondary ${secondaryName(secondary)}`,
    run: () => secondaryFinding(parts, secondary),
    fix: "Check that the database and the secondary are reachable.",
    needsDatabase: true,
  }));
}

async function secondaryFinding(
  { db, clock, settings }: SecondaryParts,
  secondary: Secondary,
): Promise<Finding> {
  const { serviceDomain: zone } = settings;
  const name = secondaryName(secondary);
  const [ours, theirs] = await Promise.all([zoneSerial(db(), zone), servedSerial(clock, secondary, zone)]);
  if (ours === 0)
    return warn("Our zones have no version yet.", "Start a process with DNS_PORT and DNS_SECONDARIES.");
  if (theirs === "silent") return fail(`${name} does not answer.`, "Start it, and open its port.");
  const fix = allowing(secondary);
  if (theirs === null) return fail(`${name} does not serve ${zone}.`, `Add the zone there. ${fix}`);
  if (theirs === ours) return ok(`${name} serves version ${ours} of ${zone}.`);
  if (Math.floor(clock.now() / 1000) - ours > COPY_SECONDS)
    return fail(`${name} serves version ${theirs} of ${zone}, not ${ours}.`, fix);
  return ok(`${name} is copying ${zone}.`);
}

/** Returns the serial that a server has for a zone; null if it does not serve the zone. */
async function servedSerial(
  clock: Clock,
  server: Secondary,
  name: string,
): Promise<number | null | "silent"> {
  const asked = await exchange(clock, {
    server,
    question: { name, type: "SOA" },
    timeoutMs: ANSWER_MS,
    edns: true,
    caseFolding: new Set(),
  });
  if (asked.kind !== "answer") return "silent";
  const soa = asked.answer.answers.find((record) => record.type === "SOA");
  return soa?.type === "SOA" ? (soa.data.serial ?? null) : null;
}
