import type { Clock } from "../../core/clock.ts";
import { newId } from "../../core/ids.ts";
import type { Queue } from "../../queue/port.ts";
import type { Db } from "../../store/engine/client.ts";
import { advance, type FanOut, nextDeliveries, nextFanOut, untouchedGuard } from "../../store/fan-outs.ts";
import { insertDeliveries } from "../../store/webhook-deliveries.ts";
import { hint } from "../hint.ts";
import { pushesOf } from "./announce.ts";

export interface FanOutDeps {
  db: Db;
  clock: Clock;
  queue: Queue;
}

/** Deliveries of one write: it holds the event loop for some five milliseconds. */
export const DELIVERIES_PER_WRITE = 250;
/** Writes for one project before it is the next one's turn. */
export const WRITES_PER_PROJECT = 4;
/** Projects of one turn. What a turn makes takes several times as long to be pushed as the pause behind it. */
export const PROJECTS_PER_TURN = 4;

/**
 * The chore that makes the deliveries that writes have left to it, some of one project, then of the next. Several
 * processes may do it at a time: of two that meet over the same ones, one changes nothing.
 */
export function makeDeliveries(deps: FanOutDeps): () => Promise<void> {
  let last = "";
  return async () => {
    for (let project = 0; project < PROJECTS_PER_TURN; project++) {
      const next = (await nextFanOut(deps.db, last)) ?? (last === "" ? null : await nextFanOut(deps.db, ""));
      // Before it is seen to: one that fails keeps no other project's back.
      last = next?.senderId ?? "";
      if (next === null) return;
      await makeSome(deps, next);
    }
  };
}

async function makeSome({ db, clock, queue }: FanOutDeps, fanOut: FanOut): Promise<void> {
  let current = fanOut;
  for (let write = 0; write < WRITES_PER_PROJECT; write++) {
    const now = clock.now();
    const { deliveries, to } = nextDeliveries(current, DELIVERIES_PER_WRITE, () => newId("dlv", now));
    const guard = untouchedGuard(current);
    const written = await db.write([...insertDeliveries(deliveries, now, guard), advance(current, to)]);
    if (written.at(-1)?.changes !== 1) return;
    hint(queue, "push", pushesOf(deliveries));
    current = { ...current, done: to };
    if (to >= current.events.length * current.webhooks.length) return;
  }
}
