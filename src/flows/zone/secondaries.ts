import { createHash } from "node:crypto";
import type { Config } from "../../config.ts";
import { HOUR_MS, SECOND_MS } from "../../core/time/units.ts";
import { NOTIFY_TIMEOUT_MS, sendNotify } from "../../net/zone/notify.ts";
import type { Secondary, WholeZone } from "../../net/zone/transfer.ts";
import { zoneLine } from "../../net/zone/zone-file.ts";
import {
  acknowledgeNotice,
  claimDueNotices,
  claimDueZones,
  type DueZone,
  insertNotices,
  restartZones,
  retryNotice,
  settleZone,
  type ZoneNotice,
} from "../../store/domains/zones.ts";
import { startOfAuthority } from "./start-of-authority.ts";
import { openWholeZone } from "./whole-zone.ts";
import type { ZoneSettings } from "./zone-settings.ts";
import type { Store } from "../../store/engine/client.ts";

export type SecondarySettings = ZoneSettings & Pick<Config, "dnsTsigKeys" | "dnsHost">;

/** Zones compared at a time. */
const ZONES_AT_ONCE = 16;
/** Time for comparing them. Then another process may. */
const COMPARE_LEASE_MS = 60 * SECOND_MS;
/** All zones are compared this often, because a certificate may expire without a write. */
const COMPARE_EVERY_MS = HOUR_MS;
/** Notices sent at a time. */
const NOTICES_AT_ONCE = 100;
/** Longer than a try takes. */
const NOTICE_LEASE_MS = 3 * NOTIFY_TIMEOUT_MS;
/** RFC 1996 §3.6: pauses between tries, doubled up to the retry time of the zone. */
const FIRST_PAUSE_MS = 5 * SECOND_MS;
const LONGEST_PAUSE_MS = 900 * SECOND_MS;

/** Returns the name of a secondary in the database and in findings. */
export function secondaryName({ ip, port }: Pick<Secondary, "ip" | "port">): string {
  return ip.includes(":") ? `[${ip}]:${port}` : `${ip}:${port}`;
}

/**
 * Returns the turn that makes a version of every zone that has changed, and owes the secondaries a notice of it. At the
 * first turn all zones are compared, and all notices are sent, because settings may have changed.
 */
export function openVersions(deps: Store, settings: SecondarySettings): () => Promise<void> {
  const { db, clock } = deps;
  const names = settings.dnsSecondaries.map(secondaryName);
  let begun = false;
  return async () => {
    if (!begun) await db.write(restartZones(settings.serviceDomain, names, clock.now()));
    begun = true;
    for (let claimed = ZONES_AT_ONCE; claimed === ZONES_AT_ONCE; ) {
      const now = clock.now();
      const leaseUntil = now + COMPARE_LEASE_MS;
      const farthest = now + COMPARE_EVERY_MS + COMPARE_LEASE_MS;
      const zones = await claimDueZones(db, { now, leaseUntil, farthest, limit: ZONES_AT_ONCE });
      await Promise.all(zones.map((zone) => compare(deps, settings, zone, leaseUntil)));
      claimed = zones.length;
    }
  };
}

/** Compares a claimed zone with its last version. */
async function compare(
  deps: Store,
  settings: SecondarySettings,
  { name, digest: before }: DueZone,
  leaseUntil: number,
): Promise<void> {
  const readAt = deps.clock.now();
  const zone = await openWholeZone(deps, settings, name);
  if (zone === null) return;
  const digest = await digestOf(zone);
  const nextAt = readAt + COMPARE_EVERY_MS;
  const names = settings.dnsSecondaries.map(secondaryName);
  await deps.db.write([
    settleZone({ name, digest, readAt, leaseUntil, nextAt }),
    ...(digest === before ? [] : [insertNotices(name, names, readAt)]),
  ]);
}

async function digestOf(zone: WholeZone): Promise<string> {
  const hash = createHash("sha256");
  for await (const records of zone.records())
    for (const record of records) hash.update(`${zoneLine(record)}\n`);
  return hash.digest("base64");
}

/** Returns the turn that sends the notices that are due. A notice is repeated until it is acknowledged. */
export function openNotices(deps: Store, settings: SecondarySettings): () => Promise<void> {
  const { db, clock } = deps;
  const byName = new Map(settings.dnsSecondaries.map((one) => [secondaryName(one), one]));
  return async () => {
    const now = clock.now();
    const leaseUntil = now + NOTICE_LEASE_MS;
    const farthest = now + LONGEST_PAUSE_MS + NOTICE_LEASE_MS;
    const notices = await claimDueNotices(db, { now, leaseUntil, farthest, limit: NOTICES_AT_ONCE });
    await Promise.all(
      notices.map(async (notice) => {
        const error = await send(deps, settings, notice, byName.get(notice.secondary));
        const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** notice.tries);
        await db.write([
          error === null
            ? acknowledgeNotice(notice, leaseUntil)
            : retryNotice(notice, error, clock.now() + pause, leaseUntil),
        ]);
      }),
    );
  };
}

/** Sends a notice once. Returns null if it is acknowledged, or why not. */
async function send(
  deps: Store,
  settings: SecondarySettings,
  { zone }: ZoneNotice,
  secondary: Secondary | undefined,
): Promise<string | null> {
  const key = settings.dnsTsigKeys.find(({ name }) => name === secondary?.keyName);
  if (secondary === undefined || key === undefined) return "another process has other settings";
  const soa = await startOfAuthority(deps, settings, zone);
  return sendNotify(deps.clock, { secondary, key, soa, hosts: settings.dnsHost });
}
