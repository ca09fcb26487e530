import { sleep } from "../../core/time/clock.ts";
import type { Store } from "../../store/engine/client.ts";
import { type Instance, listInstances } from "../../store/installation/instances.ts";
import { LEASE_MS } from "../sweep/instance.ts";

/** Pause between two looks at what the processes have, milliseconds. */
const LOOK_PAUSE_MS = 1000;

/**
 * Waits until every running process has certain master keys. Processes report it with their heartbeats.
 * @returns those that run and do not have it after the lease; a process without a heartbeat for that time has ended
 */
export async function lackingAfterLease(
  { db, clock }: Store,
  has: (masterKeys: readonly string[]) => boolean,
): Promise<Instance[]> {
  const first = new Map<string, number>();
  const end = clock.elapsed() + LEASE_MS;
  for (;;) {
    const all = await listInstances(db);
    for (const { id, heartbeatAt } of all) if (!first.has(id)) first.set(id, heartbeatAt);
    const lacking = all.filter(({ masterKeys }) => !has(masterKeys.split(" ")));
    if (lacking.length === 0) return [];
    if (clock.elapsed() >= end) return lacking.filter(({ id, heartbeatAt }) => first.get(id) !== heartbeatAt);
    await sleep(clock, LOOK_PAUSE_MS);
  }
}

/** Names processes for an operator. */
export function namesOf(processes: readonly Instance[]): string {
  return processes.map(({ host, pid }) => `${host.split(" ")[0]} (pid ${pid})`).join(", ");
}
