import { BEAT_MS, Heartbeat } from "../flows/sweep/instance.ts";
import type { Services } from "./services.ts";
import { type Loop, startLoop } from "./process/loop.ts";

/** Starts the heartbeat of this process, by which others know that it lives and which master keys it uses. */
export function startHeartbeat({ db, clock, instance, masterKeys, metrics }: Services): Loop {
  const heartbeat = new Heartbeat({ db, clock }, instance, masterKeys);
  const chore = { name: "heartbeat", turn: () => heartbeat.turn() };
  return startLoop({ clock, failures: metrics.turnFailures }, BEAT_MS, chore);
}
