import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { newId } from "../../core/ids.ts";
import { log } from "../../log.ts";
import type { Guard, Statement, Store } from "../../store/engine/client.ts";
import {
  recordHeartbeat,
  deleteInstance,
  type Instance,
  insertInstance,
  listInstances,
  silentGuard,
} from "../../store/installation/instances.ts";
import { freeClaims } from "../../store/messages/outbox.ts";
import { freeDeliveryClaims } from "../../store/webhooks/webhook-deliveries.ts";

/** Time without a heartbeat after which a process counts as dead and its claims are freed, milliseconds. */
export const LEASE_MS = 60_000;
/** Pause between the heartbeats of a process, milliseconds. */
export const BEAT_MS = LEASE_MS / 4;
/** Our own heartbeats without one of another process, after which the lease is over. */
const SILENT_BEATS = LEASE_MS / BEAT_MS;

/**
 * Registers this process, and frees the claims of dead processes of this machine. So a restart after a crash does not wait
 * for the lease.
 */
export async function registerInstance(deps: Store, pid: number, masterKeys = ""): Promise<Instance> {
  const now = deps.clock.now();
  const self: Instance = { id: newId("ins", now), host: thisHost(), pid, heartbeatAt: now, masterKeys };
  const dead = (await listInstances(deps.db)).filter((other) => isDeadHere(other, self));
  await deps.db.write([...dead.flatMap((other) => freeIfSilent(other, now)), insertInstance(self)]);
  if (dead.length > 0) log("sweep").info("freed the claims of dead processes", { instances: dead.length });
  return self;
}

/**
 * Returns a name that no other machine has: the host name, which machines of one image share, and the id of the boot.
 * After a reboot, earlier claims wait for the lease.
 */
export function thisHost(): string {
  try {
    return `${hostname()} ${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()}`;
  } catch {
    // Other systems than Linux have no such id.
    return hostname();
  }
}

/** Returns true if a process of this host has ended. In a container each process has the pid of the one before it. */
function isDeadHere(other: Instance, self: Instance): boolean {
  if (other.host !== self.host) return false;
  return other.pid === self.pid || !isAlive(other.pid);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM means that the process runs as another user.
    if (!(error instanceof Error && "code" in error && error.code === "EPERM")) return false;
  }
  return !isZombie(pid);
}

/**
 * Returns true if a process has ended and its parent has not yet read its exit code. Signals still reach it, so
 * `kill` does not tell. See proc_pid_stat(5): the state follows the name, which is in brackets and may hold brackets.
 */
function isZombie(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return /^ [ZXx]/.test(stat.slice(stat.lastIndexOf(")") + 1));
  } catch {
    // Other systems than Linux have no such file.
    return false;
  }
}

/** Frees the claims of a process, unless it sent a heartbeat since its row was read. */
function freeIfSilent(seen: Instance, now: number): Statement[] {
  return release(seen.id, now, silentGuard(seen));
}

/** Frees all claims of an instance and deletes its row, if the guard holds. */
function release(id: string, now: number, guard?: Guard): Statement[] {
  // The guard reads the instance's row, so that is deleted last.
  return [...freeClaims(id, now, guard), freeDeliveryClaims(id, now, guard), deleteInstance(id, guard)];
}

/** The last observation of another process. */
interface Sighting {
  heartbeatAt: number;
  /** Our heartbeats since its own last changed. */
  still: number;
}

/**
 * Writes the heartbeat of this process, and frees the claims of processes without one for the lease. The lease is counted in
 * our own heartbeats. If the clock were used, setting it forward would make live processes look dead, and their messages
 * would be sent twice.
 */
export class Heartbeat {
  readonly #deps: Store;
  readonly #self: Instance;
  readonly #masterKeys: () => Promise<string>;
  #sightings: ReadonlyMap<string, Sighting> = new Map();

  /** @param masterKeys looks which master keys are in use, and returns their ids */
  constructor(deps: Store, self: Instance, masterKeys = async () => self.masterKeys) {
    this.#deps = deps;
    this.#self = self;
    this.#masterKeys = masterKeys;
  }

  async turn(): Promise<void> {
    const { db, clock } = this.#deps;
    const masterKeys = await this.#masterKeys();
    const self = { ...this.#self, masterKeys };
    const others = (await listInstances(db)).filter(({ id }) => id !== self.id);
    const seen = new Map(others.map((other) => [other.id, this.#sighting(other)]));
    const silent = others.filter(({ id }) => (seen.get(id)?.still ?? 0) >= SILENT_BEATS);
    const now = clock.now();
    const [beaten] = await db.write([
      recordHeartbeat({ ...self, heartbeatAt: now }),
      ...silent.flatMap((other) => freeIfSilent(other, now)),
    ]);
    this.#sightings = seen;
    // Another process freed our claims, as after a long sleep of the machine. Continue under the same id.
    if (beaten?.changes === 0) await db.write([insertInstance({ ...self, heartbeatAt: now })]);
  }

  #sighting({ id, heartbeatAt }: Instance): Sighting {
    const before = this.#sightings.get(id);
    return { heartbeatAt, still: before?.heartbeatAt === heartbeatAt ? before.still + 1 : 0 };
  }
}

/** Frees the remaining claims at a stop, and deletes the row of this process. */
export async function deregisterInstance(deps: Store, self: Instance): Promise<void> {
  await deps.db.write(release(self.id, deps.clock.now()));
}
