import type { Clock } from "../../core/clock.ts";
import { HOUR_MS, MINUTE_MS } from "../../core/time-units.ts";
import type { RedisFacts } from "../../queue/port.ts";
import type { Db } from "../../store/engine/client.ts";
import { MAX_COUNTED, type OutboxDepth, queueDepths } from "../../store/queue-depth.ts";
import { type Check, fail, type Finding, ok, warn } from "./check.ts";

/** How long what is due may wait for a worker, milliseconds: a limit of a destination's rate may hold it for minutes. */
const WARN_WAIT_MS = 5 * MINUTE_MS;
const FAIL_WAIT_MS = HOUR_MS;

/** Share of its memory from which on a Redis is soon full. */
const NEARLY_FULL = 0.9;

export interface QueueParts {
  db: () => Db;
  clock: Clock;
  /** Null: queues in the process. */
  redis: (() => Promise<RedisFacts>) | null;
}

/** Redis, and what waits. */
export function queueChecks({ db, clock, redis }: QueueParts): Check[] {
  const waiting = (what: string, kind: "recipients" | "deliveries") => async () => {
    const now = clock.now();
    return waitFinding(what, (await queueDepths(db(), now))[kind], now);
  };
  const fix = "see that the database answers";
  const needsDatabase = true;
  return [
    ...(redis === null ? [] : [redisCheck(redis)]),
    { name: "mail queue", run: waiting("recipients", "recipients"), fix, needsDatabase },
    { name: "webhook queue", run: waiting("webhook deliveries", "deliveries"), fix, needsDatabase },
  ];
}

function redisCheck(redis: () => Promise<RedisFacts>): Check {
  const fix =
    "see that the Redis of REDIS_URL runs, takes its user and password, and has the database it names";
  return { name: "redis", run: async () => redisFinding(await redis()), fix };
}

function redisFinding({ version, policy, appendOnly, isReplica, fullness }: RedisFacts): Finding {
  if (isReplica)
    return fail(`Redis ${version} is a replica and takes no writes`, "name its primary in REDIS_URL");
  if (policy !== "noeviction")
    return fail(
      `Redis ${version} drops entries when its memory is full: maxmemory-policy is ${policy}`,
      "set maxmemory-policy noeviction in its configuration",
    );
  if (fullness >= NEARLY_FULL) {
    const message = `Redis ${version} uses ${Math.round(fullness * 100)} % of its memory limit; once it is full, mail waits a minute longer`;
    return (fullness >= 1 ? fail : warn)(message, "set a larger maxmemory in its configuration");
  }
  if (!appendOnly)
    return warn(
      `Redis ${version} keeps no file: nothing is lost with it, but after its restart the queues fill again from the database`,
      "set appendonly yes in its configuration",
    );
  return ok(`Redis ${version} answers, evicts nothing and keeps a file`);
}

function waitFinding(what: string, { due, dueSince }: OutboxDepth, now: number): Finding {
  if (dueSince === null) return ok("nothing is due");
  const waits = Math.max(0, now - dueSince);
  const count = due >= MAX_COUNTED ? `${MAX_COUNTED} or more` : String(due);
  const message = `${count} ${what} due, the oldest for ${timeText(waits)}`;
  const fix = "see that a process with the role worker runs, and what its log says of deliveries";
  if (waits >= FAIL_WAIT_MS) return fail(message, fix);
  return waits >= WARN_WAIT_MS ? warn(message, fix) : ok(message);
}

function timeText(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}
