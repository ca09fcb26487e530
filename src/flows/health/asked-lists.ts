import { HOUR_MS } from "../../core/time/units.ts";
import type { Clock } from "../../core/time/clock.ts";
import type { Db, Statement } from "../../store/engine/client.ts";
import { readFact, recordFact } from "../../store/installation/facts.ts";
import { type Check, fail, type Finding, type HealthStatus, ok, warn } from "./check.ts";

/** Age from which on what the lists said is no longer news, milliseconds. The service asks every hour. */
export const LISTS_STALE_MS = 3 * HOUR_MS;

/** The answers of the block lists to the service's last question. */
interface AskedLists {
  /** Milliseconds since the epoch. */
  at: number;
  /** The addresses that they were asked about. */
  addresses: readonly string[];
  lists: readonly AskedList[];
}

export interface AskedList {
  /** The list's zone. */
  list: string;
  /** `ok`: it has none of ours. `warn`: it does not answer, so nothing is known. `fail`: it has one. */
  status: HealthStatus;
  message: string;
  fix: string;
}

/** Returns the statement that records what the lists said, for every process and for `doctor`. */
export function recordAskedLists(asked: AskedLists): Statement {
  return recordFact("lists_found", JSON.stringify(asked));
}

export interface AskedListsParts {
  clock: Clock;
  /** Returns the database; throws if it cannot be opened. */
  db: () => Db;
  /** Addresses that mail leaves from. */
  addresses: readonly string[];
}

/** Makes the check of what block lists said when the service last asked. Asks none itself. */
export function askedListsCheck({ clock, db, addresses }: AskedListsParts): Check {
  return {
    name: "block lists",
    fix: "Check that the database is reachable.",
    needsDatabase: true,
    async run() {
      if (addresses.length === 0)
        // Another check warns of this.
        return ok("Unknown: block lists are not asked about addresses, because PUBLIC_IPS is not set.");
      const found = await readFact(db(), "lists_found");
      const asked: AskedLists | null = found === null ? null : JSON.parse(found);
      if (asked === null || String(asked.addresses) !== String(addresses))
        return ok(
          "Unknown yet: the service asks block lists every hour, first an hour after its first start.",
        );
      return findingOf(asked, clock.now());
    },
  };
}

function findingOf({ at, lists }: AskedLists, now: number): Finding {
  const when = new Date(at).toISOString();
  if (now - at > LISTS_STALE_MS)
    return warn(
      `Unknown: the service last asked block lists at ${when}.`,
      "Check that a process with the role worker runs, or call `postrider doctor --lists`.",
    );
  const listed = lists.filter(({ status }) => status === "fail");
  if (listed.length > 0)
    return fail(
      listed.map(({ message }) => message).join(" "),
      [...new Set(listed.map(({ fix }) => fix))].join(" "),
    );
  const silent = lists.filter(({ status }) => status === "warn");
  if (silent.length > 0)
    return warn(
      `Unknown: at ${when}, ${silent.length} of ${lists.length} block lists did not answer: ${silent.map(({ list }) => list).join(", ")}. The others have none of our addresses and names.`,
      "Set DNS_SERVERS to a resolver of your own: block lists refuse those that many share.",
    );
  return ok(`At ${when}, none of ${lists.length} block lists had our addresses and names.`);
}
