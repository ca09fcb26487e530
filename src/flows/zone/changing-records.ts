import { cacheFor, inTime } from "../../core/time/clock.ts";
import type { ChangingRecords } from "../../net/zone/answer.ts";
import type { RecordData, ZoneRecord } from "../../net/zone/records.ts";
import { challengeValues, findAcmeAccount } from "../../store/domains/certificates.ts";
import type { Db, Store } from "../../store/engine/client.ts";
import type { HostSettings } from "../certificates/domain-hosts.ts";
import { type OwnPolicy, ownPolicy } from "../certificates/own-policy.ts";
import { usesAcme } from "../certificates/served.ts";
import { serviceCertificate } from "../certificates/wanted.ts";
import { challengeName, linksHost, stsRecordName } from "../../core/own-names.ts";

/** Time for which what was read is kept: any number of queries for a name cost one read of the database in it. */
export const CHANGING_FRESH_MS = 1000;
/** Timeout of a read, about as long as a resolver waits for an answer. */
const READ_TIMEOUT_MS = 3000;
/** TTL of an answer to a challenge, which is read once. */
export const CHALLENGE_TTL_SECONDS = 30;
/** TTL of records that depend on the certificate. */
export const CERTIFICATE_TTL_SECONDS = 1800;
/** Maximum number of answers at one name. There is one for each order in progress. */
const MAX_ANSWERS = 8;

type Find = ChangingRecords["find"];

/** Returns the records of the service's zone that depend on its certificates. */
export function changingRecords(deps: Store, settings: HostSettings): ChangingRecords[] {
  const { serviceDomain } = settings;
  const row = (type: RecordData["type"], name: string, ttl: number, read: () => Promise<RecordData[]>) => {
    const find: Find = async () => (await read()).map((data): ZoneRecord => ({ name, ttl, ...data }));
    return { type, name, find: kept(deps, find) };
  };
  return [
    ...serviceCertificate(settings).names.map((host) => {
      const name = challengeName(host);
      return row("TXT", name, CHALLENGE_TTL_SECONDS, () => challenges(deps.db, name));
    }),
    // A CAA lookup for an alias ends at its target (RFC 8659 §3), whatever its owner's zone says.
    ...[serviceDomain, linksHost(serviceDomain)].map((name) =>
      row("CAA", name, CERTIFICATE_TTL_SECONDS, () => issuers(deps.db, settings)),
    ),
    row("TXT", stsRecordName(serviceDomain), CERTIFICATE_TTL_SECONDS, () => announcement(deps, settings)),
  ];
}

/** Keeps what a read returned for a second. If the database hangs, the query fails instead of waiting for good. */
function kept({ clock }: Store, read: Find): Find {
  return cacheFor(clock, CHANGING_FRESH_MS, () =>
    inTime(clock, READ_TIMEOUT_MS, read(), "the database does not answer"),
  );
}

/** Returns the answers to challenges at a name. */
export async function challenges(db: Db, name: string): Promise<RecordData[]> {
  const values = await challengeValues(db, name, MAX_ANSWERS);
  return values.map((data) => ({ type: "TXT", data }));
}

/** Lets only the CA that we order from issue certificates for our names (RFC 8659). */
export async function issuers(db: Db, settings: HostSettings): Promise<RecordData[]> {
  if (!usesAcme(settings)) return [];
  const account = await findAcmeAccount(db, settings.acmeDirectory);
  return (account?.caaNames ?? []).map((value) => ({ type: "CAA", data: { flags: 0, tag: "issue", value } }));
}

/** Announces our MTA-STS policy while it is served. */
async function announcement(deps: Store, settings: HostSettings): Promise<RecordData[]> {
  const policy = await ownPolicy(deps, settings);
  return policy === null ? [] : [{ type: "TXT", data: announcementOf(policy) }];
}

/** Returns the text that announces a policy (RFC 8461 §3.1). */
export function announcementOf({ id }: OwnPolicy): string {
  return `v=STSv1; id=${id};`;
}
