import type { Redis } from "ioredis";
import { type ConnectionState, openProducer } from "./redis.ts";
import { type QueueDeps, reason, type LimitedLog, createLimitedLog } from "./limited-log.ts";
import { settlesWithin } from "../core/time/clock.ts";

/** Longest wait for an answer of Redis, milliseconds. */
export const ASK_WAIT_MS = 100;
/** Time between a failure of Redis and the next probe, milliseconds. Until Redis is back, no request waits for it. */
export const ASK_AWAY_MS = 1_000;
/** Maximum number of requests that wait for Redis at a time. Requests beyond that go without it. */
export const MAX_ASKING = 1_000;

/** A Redis for questions that this process can also decide alone. */
export interface OptionalRedis {
  readonly client: Redis;
  /** Asks Redis. Returns null if it cannot answer, or not in time. Never rejects. */
  ask<Answer>(question: () => Promise<Answer>): Promise<Answer | null>;
  close(): void;
}

interface State {
  deps: QueueDeps;
  trouble: LimitedLog;
  /** The log line if Redis fails. */
  without: string;
  client: Redis;
  lifeline: ConnectionState;
  /** Set if Redis has failed, until a probe succeeds. */
  away: boolean;
  asking: number;
}

/**
 * Opens a separate connection, because a request on the queue's connection would wait for thousands of jobs.
 * @param without the log line while Redis is away
 */
export function openOptionalRedis(deps: QueueDeps, url: string, without: string): OptionalRedis {
  const trouble = createLimitedLog(deps);
  const lifeline: ConnectionState = { ended: false, lostAt: -Infinity };
  const client = openProducer(deps.clock, url, lifeline, trouble);
  const state: State = { deps, trouble, without, client, lifeline, away: false, asking: 0 };
  return {
    client,
    ask: (question) => (usable(state) ? ask(state, question) : Promise.resolve(null)),
    close() {
      lifeline.ended = true;
      client.disconnect();
    },
  };
}

function usable({ client, away, asking }: State): boolean {
  return client.status === "ready" && !away && asking < MAX_ASKING;
}

async function ask<Answer>(state: State, question: () => Promise<Answer>): Promise<Answer | null> {
  let given: Answer | null = null;
  state.asking++;
  try {
    const asking = question().then((answer) => {
      given = answer;
    });
    if (await settlesWithin(state.deps.clock, ASK_WAIT_MS, asking)) return given;
    leave(state, "redis did not answer");
  } catch (error) {
    leave(state, reason(error));
  } finally {
    state.asking--;
  }
  return null;
}

/** Stops asking Redis. If several requests fail together, only the first one logs it. */
function leave(state: State, error: string): void {
  if (state.away) return;
  state.away = true;
  state.trouble(state.without, { error });
  state.deps.clock.after(ASK_AWAY_MS, () => void probe(state));
}

/** Probes Redis until it answers again. No request waits for the probe. */
async function probe(state: State): Promise<void> {
  if (state.lifeline.ended) return;
  const { client, deps } = state;
  try {
    if (client.status === "ready" && (await settlesWithin(deps.clock, ASK_WAIT_MS, client.ping())))
      state.away = false;
  } catch {
    // The connection has logged the reason.
  }
  if (state.away) deps.clock.after(ASK_AWAY_MS, () => void probe(state));
}

/** Runs a script on one key. Rejects if Redis cannot. Redis runs a script alone, so it is atomic for all processes. */
export type Script = (key: string, ...args: (string | number)[]) => Promise<unknown>;

/**
 * Makes a script a command of a client.
 * @param name no command of Redis
 */
export function redisScript(client: Redis, name: string, lua: string): Script {
  client.defineCommand(name, { numberOfKeys: 1, lua });
  const defined: unknown = Reflect.get(client, name);
  return (key, ...args) => (defined as Script).call(client, key, ...args);
}
