import type { Redis } from "ioredis";
import type { Config, Plan } from "../config.ts";
import type { Clock } from "../core/clock.ts";
import { DEFAULT_PREFIX } from "./bullmq.ts";
import type { QueuePlace } from "./open.ts";
import { type Lifeline, openProducer } from "./redis.ts";
import { redisBuckets, type TakeFromRedis } from "./redis-buckets.ts";
import { memoryBuckets, type Taken, type TakeToken } from "./token-bucket.ts";
import { type QueueDeps, reason, type Trouble, troubleLog } from "./trouble.ts";
import { within } from "./within.ts";

/** Time a request waits for Redis before its token is taken here, milliseconds. */
export const RATE_WAIT_MS = 100;
/** Time after which a Redis that failed is probed, milliseconds. Until it is well no request waits for it. */
export const RATE_AWAY_MS = 1_000;
/** Requests that wait for Redis at a time; those over it take their tokens here. */
export const MAX_ASKING = 1_000;

/** Which plans there are. A plan that is named nowhere counts as the default one. */
export type RateLimits = Pick<Config, "plans" | "defaultPlan">;

/** The rate limiter: a token bucket for each id, filled and bounded by its plan. */
export interface RateBuckets {
  /** Takes one token; null where the plan has no limit. Never rejects, and waits RATE_WAIT_MS at most. */
  take(id: string, plan: string): Promise<Taken | null>;
  /** Lets go of the connection. */
  close(): void;
}

interface State {
  clock: Clock;
  trouble: Trouble;
  client: Redis;
  shared: TakeFromRedis;
  lifeline: Lifeline;
  /** Redis has failed, and is left alone until a probe finds it well. */
  away: boolean;
  asking: number;
}

/**
 * Opens the rate limiter; never fails. On a Redis the buckets are shared by all processes; while it is away, slow or
 * not yet reached, each process counts for itself.
 */
export function openRateLimiter(deps: QueueDeps, place: QueuePlace, limits: RateLimits): RateBuckets {
  const { redisUrl, prefix = DEFAULT_PREFIX } = place;
  const own = memoryBuckets(() => deps.clock.now());
  const buckets = redisUrl === null ? { take: own, close() {} } : onRedis(deps, redisUrl, prefix, own);
  return {
    async take(id, name) {
      const known = Object.hasOwn(limits.plans, name) ? name : limits.defaultPlan;
      const plan = limits.plans[known] ?? null;
      return plan === null ? null : buckets.take(id, plan);
    },
    close: buckets.close,
  };
}

function onRedis(deps: QueueDeps, url: string, prefix: string, own: TakeToken) {
  const { clock } = deps;
  const trouble = troubleLog(deps);
  const lifeline: Lifeline = { ended: false, lostAt: 0 };
  // A connection of its own: behind thousands of jobs on the queue's, a request would wait.
  const client = openProducer(clock, url, lifeline, trouble);
  const shared = redisBuckets(client, prefix);
  const state: State = { clock, trouble, client, shared, lifeline, away: false, asking: 0 };
  return {
    take: async (id: string, plan: Plan) =>
      (usable(state) ? await ask(state, id, plan) : null) ?? own(id, plan),
    close() {
      lifeline.ended = true;
      client.disconnect();
    },
  };
}

function usable({ client, away, asking }: State): boolean {
  return client.status === "ready" && !away && asking < MAX_ASKING;
}

/** One token from Redis; null where it cannot or does not answer in time. */
async function ask(state: State, id: string, plan: Plan): Promise<Taken | null> {
  let taken: Taken | null = null;
  state.asking++;
  try {
    const asking = state.shared(id, plan).then((answer) => {
      taken = answer;
    });
    if (await within(state.clock, RATE_WAIT_MS, asking)) return taken;
    leave(state, "redis did not answer");
  } catch (error) {
    leave(state, reason(error));
  } finally {
    state.asking--;
  }
  return null;
}

/** Leaves Redis alone. All requests that waited for it just now fail together, and the first of them tells. */
function leave(state: State, error: string): void {
  if (state.away) return;
  state.away = true;
  state.trouble("request rates are counted in this process only", { error });
  state.clock.after(RATE_AWAY_MS, () => void probe(state));
}

/** Asks Redis beside the requests, which do not wait for that, until it answers again. */
async function probe(state: State): Promise<void> {
  if (state.lifeline.ended) return;
  try {
    const { client, clock } = state;
    if (client.status === "ready" && (await within(clock, RATE_WAIT_MS, client.ping()))) state.away = false;
  } catch {
    // The connection has told why.
  }
  if (state.away) state.clock.after(RATE_AWAY_MS, () => void probe(state));
}
