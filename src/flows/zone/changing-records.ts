import { cacheFor, type Clock, inTime } from "../../core/time/clock.ts";
import type { ZoneRecord } from "../../net/zone/records.ts";
import { challengeValues } from "../../store/certificates.ts";
import type { Db } from "../../store/engine/client.ts";
import { type NameSettings, serviceCertificate } from "../certificates/wanted.ts";
import { challengeName } from "./own-names.ts";

/** Time for which what was read is kept: any number of queries for a name cost one read of the database in it. */
export const CHANGING_FRESH_MS = 1000;
/** Timeout of a read, about as long as a resolver waits for an answer. */
const READ_TIMEOUT_MS = 3000;
/** TTL of an answer to a challenge, which is read once. */
const CHALLENGE_TTL_SECONDS = 30;
/** Answers at one name. There is one for each order under way. */
const MAX_ANSWERS = 8;

export interface ChangingDeps {
  db: Db;
  clock: Clock;
}

type Find = () => Promise<readonly ZoneRecord[]>;

/** Returns the names of the service's zone whose records the database decides while it is served. */
export function changingRecords(deps: ChangingDeps, settings: NameSettings): ReadonlyMap<string, Find> {
  const { names } = serviceCertificate(settings);
  return new Map(names.map(challengeName).map((name) => [name, kept(deps, () => challenges(deps.db, name))]));
}

/** Keeps what a read returned for a second. If the database hangs, the query fails instead of waiting for good. */
function kept({ clock }: ChangingDeps, read: Find): Find {
  return cacheFor(clock, CHANGING_FRESH_MS, () =>
    inTime(clock, READ_TIMEOUT_MS, read(), "the database does not answer"),
  );
}

async function challenges(db: Db, name: string): Promise<ZoneRecord[]> {
  const values = await challengeValues(db, name, MAX_ANSWERS);
  return values.map((data) => ({ name, ttl: CHALLENGE_TTL_SECONDS, type: "TXT", data }));
}
