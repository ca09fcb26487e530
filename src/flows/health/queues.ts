import type { Clock } from "../../core/time/clock.ts";
import { HOUR_MS, MINUTE_MS } from "../../core/time/units.ts";
import type { RedisFacts } from "../../queue/port.ts";
import type { Db } from "../../store/engine/client.ts";
import { MAX_COUNTED, type OutboxDepth, queueDepths } from "../../store/messages/queue-depth.ts";
import { type Check, fail, type Finding, ok, warn } from "./check.ts";

/**
 * Wait for a worker from which the check warns, milliseconds. The rate limit of a destination may hold a message
 * for minutes.
 */
const WARN_WAIT_MS = 5 * MINUTE_MS;
const FAIL_WAIT_MS = HOUR_MS;

/** Share of the memory limit from which on the check warns. */
const NEARLY_FULL = 0.9;

export interface QueueParts {
  db: () => Db;
  clock: Clock;
  /** Null if the queues are in the process. */
  redis: (() => Promise<RedisFacts>) | null;
}

/** Checks Redis and the waiting jobs. */
export function queueChecks({ db, clock, redis }: QueueParts): Check[] {
  const waiting = (nouns: Nouns, kind: "recipients" | "deliveries") => async () => {
    const now = clock.now();
    return waitFinding(nouns, (await queueDepths(db(), now))[kind], now);
  };
  const fix = "Check that the database is reachable.";
  const needsDatabase = true;
  return [
    ...(redis === null ? [] : [redisCheck(redis)]),
    { name: "mail queue", run: waiting(["recipient", "recipients"], "recipients"), fix, needsDatabase },
    {
      name: "webhook queue",
      run: waiting(["webhook delivery", "webhook deliveries"], "deliveries"),
      fix,
      needsDatabase,
    },
  ];
}

function redisCheck(redis: () => Promise<RedisFacts>): Check {
  const fix = "Check that the Redis of REDIS_URL runs, accepts its user and password, and has its database.";
  return { name: "redis", run: async () => redisFinding(await redis()), fix };
}

function redisFinding({ version, policy, appendOnly, isReplica, fullness }: RedisFacts): Finding {
  if (isReplica)
    return fail(`Redis ${version} is a replica and takes no writes.`, "Set REDIS_URL to its primary.");
  if (policy !== "noeviction")
    return fail(
      `Redis ${version} drops entries when its memory is full, because maxmemory-policy is ${policy}.`,
      "Set maxmemory-policy noeviction in its configuration.",
    );
  if (fullness >= NEARLY_FULL) {
    const message = `Redis ${version} uses ${Math.round(fullness * 100)} % of its memory limit. Once it is full, messages wait a minute longer.`;
    return (fullness >= 1 ? fail : warn)(message, "Set a larger maxmemory in its configuration.");
  }
  if (!appendOnly)
    return warn(
      `Redis ${version} keeps no file, so after its restart the queues are filled again from the database. No message is lost.`,
      "Set appendonly yes in its configuration.",
    );
  return ok(`Redis ${version} answers, evicts nothing and keeps a file.`);
}

/** A noun for one and for several. */
type Nouns = readonly [one: string, several: string];

function waitFinding([one, several]: Nouns, { due, dueSince }: OutboxDepth, now: number): Finding {
  if (dueSince === null) return ok("Nothing is due.");
  const waits = Math.max(0, now - dueSince);
  const count = due >= MAX_COUNTED ? `${MAX_COUNTED} or more` : String(due);
  const message = `${count} ${due === 1 ? `${one} is` : `${several} are`} due, the oldest for ${timeText(waits)}.`;
  const fix = "Check that a process with the role worker runs, and read its log.";
  if (waits >= FAIL_WAIT_MS) return fail(message, fix);
  return waits >= WARN_WAIT_MS ? warn(message, fix) : ok(message);
}

function timeText(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}
