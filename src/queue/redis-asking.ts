import type { Redis } from "ioredis";
import { type Lifeline, openProducer } from "./redis.ts";
import { type QueueDeps, reason, type Trouble, troubleLog } from "./trouble.ts";
import { settlesWithin } from "./within.ts";

/** Time an answer of Redis is waited for before its asker does without, milliseconds. */
export const ASK_WAIT_MS = 100;
/** Time after which a Redis that failed is probed, milliseconds. Until it is well nobody waits for it. */
export const ASK_AWAY_MS = 1_000;
/** Those who wait for Redis at a time; those over it do without. */
export const MAX_ASKING = 1_000;

/** A Redis that is asked for what this process could decide alone, if need be. */
export interface Asking {
  readonly client: Redis;
  /** The answer; null where Redis cannot or does not answer in time. Never rejects. */
  ask<Answer>(question: () => Promise<Answer>): Promise<Answer | null>;
  close(): void;
}

interface State {
  deps: QueueDeps;
  trouble: Trouble;
  /** What the log says when Redis fails. */
  without: string;
  client: Redis;
  lifeline: Lifeline;
  /** Redis has failed, and is left alone until a probe finds it well. */
  away: boolean;
  asking: number;
}

/**
 * A connection of its own: behind thousands of jobs on the queue's, a question would wait.
 * @param without what is so while Redis is away, for the log
 */
export function openAsking(deps: QueueDeps, url: string, without: string): Asking {
  const trouble = troubleLog(deps);
  const lifeline: Lifeline = { ended: false, lostAt: 0 };
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

/** Leaves Redis alone. All who waited for it just now fail together, and the first of them tells. */
function leave(state: State, error: string): void {
  if (state.away) return;
  state.away = true;
  state.trouble(state.without, { error });
  state.deps.clock.after(ASK_AWAY_MS, () => void probe(state));
}

/** Asks Redis beside those who need it, who do not wait for that, until it answers again. */
async function probe(state: State): Promise<void> {
  if (state.lifeline.ended) return;
  const { client, deps } = state;
  try {
    if (client.status === "ready" && (await settlesWithin(deps.clock, ASK_WAIT_MS, client.ping())))
      state.away = false;
  } catch {
    // The connection has told why.
  }
  if (state.away) deps.clock.after(ASK_AWAY_MS, () => void probe(state));
}
