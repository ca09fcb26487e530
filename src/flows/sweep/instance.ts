import { hostname } from "node:os";
import type { Clock } from "../../core/clock.ts";
import { newId } from "../../core/ids.ts";
import { log } from "../../log.ts";
import type { Db, Statement } from "../../store/client.ts";
import { beat, deleteInstance, type Instance, insertInstance, listInstances } from "../../store/instances.ts";
import { freeClaims } from "../../store/outbox.ts";
import { freeDeliveryClaims } from "../../store/webhook-deliveries.ts";

/** Silence after which a process is taken for dead and its claims are freed. */
export const LEASE_MS = 60_000;

export interface InstanceDeps {
  db: Db;
  clock: Clock;
}

/**
 * Registers this process and takes up at once what a dead one on this machine held: a restart after a crash must not
 * wait for the lease to run out.
 */
export async function registerInstance(deps: InstanceDeps, pid: number): Promise<Instance> {
  const now = deps.clock.now();
  const self: Instance = { id: newId("ins", now), host: hostname(), pid, heartbeatAt: now };
  const dead = (await listInstances(deps.db)).filter((other) => isDeadHere(other, self));
  await deps.db.write([...dead.flatMap((other) => burial(other.id, now)), insertInstance(self)]);
  if (dead.length > 0) log("sweep").info("took up the work of dead processes", { instances: dead.length });
  return self;
}

/** A process of this host that no longer runs. In a container every process has the same pid: then it was us. */
function isDeadHere(other: Instance, self: Instance): boolean {
  if (other.host !== self.host) return false;
  return other.pid === self.pid || !isAlive(other.pid);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it runs, as somebody else.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** Frees everything an instance has claimed and forgets it. */
function burial(id: string, now: number): Statement[] {
  return [...freeClaims(id, now), freeDeliveryClaims(id, now), deleteInstance(id)];
}

/** Says that this process lives, and frees the claims of those that have been silent for the lease. */
export async function heartbeat(deps: InstanceDeps, self: Instance): Promise<void> {
  const now = deps.clock.now();
  const silent = (await listInstances(deps.db)).filter(
    (other) => other.id !== self.id && other.heartbeatAt < now - LEASE_MS,
  );
  const [beaten] = await deps.db.write([
    beat(self.id, now),
    ...silent.flatMap((other) => burial(other.id, now)),
  ]);
  // Others took us for dead (a long sleep of the machine): our claims are freed, and we go on under the same name.
  if (beaten?.changes === 0) await deps.db.write([insertInstance({ ...self, heartbeatAt: now })]);
}

/** At a stop: gives back what is still claimed and takes this process off the list. */
export async function deregisterInstance(deps: InstanceDeps, self: Instance): Promise<void> {
  await deps.db.write(burial(self.id, deps.clock.now()));
}
