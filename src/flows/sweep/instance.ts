import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import type { Clock } from "../../core/clock.ts";
import { newId } from "../../core/ids.ts";
import { log } from "../../log.ts";
import type { Db, Guard, Statement } from "../../store/engine/client.ts";
import {
  beat,
  deleteInstance,
  type Instance,
  insertInstance,
  listInstances,
  silentGuard,
} from "../../store/instances.ts";
import { freeClaims } from "../../store/outbox.ts";
import { freeDeliveryClaims } from "../../store/webhook-deliveries.ts";

/** Silence after which a process is taken for dead and its claims are freed, milliseconds. */
export const LEASE_MS = 60_000;
/** Pause between the heartbeats of a process, milliseconds. */
export const BEAT_MS = LEASE_MS / 4;
/** Heartbeats of our own in which another process has not moved: at least the lease lies between the first and the last. */
const SILENT_BEATS = LEASE_MS / BEAT_MS;

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
  const self: Instance = { id: newId("ins", now), host: thisHost(), pid, heartbeatAt: now };
  const dead = (await listInstances(deps.db)).filter((other) => isDeadHere(other, self));
  await deps.db.write([...dead.flatMap((other) => burial(other, now)), insertInstance(self)]);
  if (dead.length > 0) log("sweep").info("took up the work of dead processes", { instances: dead.length });
  return self;
}

/**
 * What tells this machine from others: two made of one image may share a name, but not the id of a boot. After a boot
 * the claims of before wait for the lease.
 */
export function thisHost(): string {
  try {
    return `${hostname()} ${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()}`;
  } catch {
    // No Linux: the name has to do.
    return hostname();
  }
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

/** Takes up the work of a process, unless it has beaten since it was read. */
function burial(seen: Instance, now: number): Statement[] {
  return release(seen.id, now, silentGuard(seen));
}

/** Frees everything an instance has claimed and forgets it, where the guard holds. */
function release(id: string, now: number, guard?: Guard): Statement[] {
  // The row that a guard looks at goes last.
  return [...freeClaims(id, now, guard), freeDeliveryClaims(id, now, guard), deleteInstance(id, guard)];
}

/** What was last seen of another process. */
interface Sighting {
  heartbeatAt: number;
  /** Our heartbeats since in which its own stood still. */
  still: number;
}

/**
 * Says that this process lives, and frees the claims of those that have been silent for the lease. Silence is counted
 * in heartbeats of our own, not read off the clock: a clock put forward would make every process look dead, and mail
 * that they have in hand would go out twice; one put back would keep a dead one alive.
 */
export class Heartbeat {
  readonly #deps: InstanceDeps;
  readonly #self: Instance;
  #sightings: ReadonlyMap<string, Sighting> = new Map();

  constructor(deps: InstanceDeps, self: Instance) {
    this.#deps = deps;
    this.#self = self;
  }

  async turn(): Promise<void> {
    const { db, clock } = this.#deps;
    const self = this.#self;
    const others = (await listInstances(db)).filter(({ id }) => id !== self.id);
    const seen = new Map(others.map((other) => [other.id, this.#sighting(other)]));
    const silent = others.filter(({ id }) => (seen.get(id)?.still ?? 0) >= SILENT_BEATS);
    const now = clock.now();
    const [beaten] = await db.write([beat(self.id, now), ...silent.flatMap((other) => burial(other, now))]);
    this.#sightings = seen;
    // Others took us for dead (a long sleep of the machine): our claims are freed, and we go on under the same name.
    if (beaten?.changes === 0) await db.write([insertInstance({ ...self, heartbeatAt: now })]);
  }

  #sighting({ id, heartbeatAt }: Instance): Sighting {
    const before = this.#sightings.get(id);
    return { heartbeatAt, still: before?.heartbeatAt === heartbeatAt ? before.still + 1 : 0 };
  }
}

/** At a stop: gives back what is still claimed and takes this process off the list. */
export async function deregisterInstance(deps: InstanceDeps, self: Instance): Promise<void> {
  await deps.db.write(release(self.id, deps.clock.now()));
}
