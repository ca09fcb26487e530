import { newId } from "../../core/ids.ts";
import {
  advanceFanOut,
  type FanOut,
  nextDeliveries,
  nextFanOut,
  untouchedGuard,
} from "../../store/webhooks/fan-outs.ts";
import { insertDeliveries } from "../../store/webhooks/webhook-deliveries.ts";
import { hint } from "../../queue/hint.ts";
import { pushesOf } from "./announce.ts";
import type { Outbox } from "../outbox.ts";

/** Deliveries per write. Such a write holds the event loop for about five milliseconds. */
export const DELIVERIES_PER_WRITE = 250;
/** Writes for one project before the next project is served. */
export const WRITES_PER_PROJECT = 4;
/** Projects per turn. Pushing the deliveries of a turn takes several times as long as the pause after it. */
export const PROJECTS_PER_TURN = 4;

/**
 * Returns the chore that makes the deliveries that writes have left to it, some of one project, then of the next.
 * Several processes may run it. If two make the same deliveries, one of them changes nothing.
 */
export function makeDeliveries(deps: Outbox): () => Promise<void> {
  let last = "";
  return async () => {
    for (let project = 0; project < PROJECTS_PER_TURN; project++) {
      const next = (await nextFanOut(deps.db, last)) ?? (last === "" ? null : await nextFanOut(deps.db, ""));
      // Set before the project is served. If that fails, the next projects are served all the same.
      last = next?.senderId ?? "";
      if (next === null) return;
      await makeSome(deps, next);
    }
  };
}

async function makeSome({ db, clock, queue }: Outbox, fanOut: FanOut): Promise<void> {
  let current = fanOut;
  for (let write = 0; write < WRITES_PER_PROJECT; write++) {
    const now = clock.now();
    const { deliveries, to } = nextDeliveries(current, DELIVERIES_PER_WRITE, () => newId("dlv", now));
    const guard = untouchedGuard(current);
    const written = await db.write([...insertDeliveries(deliveries, now, guard), advanceFanOut(current, to)]);
    if (written.at(-1)?.changes !== 1) return;
    hint(queue, "push", pushesOf(deliveries));
    current = { ...current, done: to };
    if (to >= current.events.length * current.webhooks.length) return;
  }
}
