import { ALWAYS, type Db, type Guard, type Statement } from "./engine/client.ts";

/** One running process. Its claims name it by its id. */
export interface Instance {
  id: string;
  host: string;
  pid: number;
  /** Milliseconds, by its own clock. */
  heartbeatAt: number;
}

/**
 * The condition that an instance is registered: only such a process may claim. If an unregistered process claimed a
 * row and died, no process would free the row.
 */
export const IS_REGISTERED = "EXISTS (SELECT 1 FROM instances WHERE id = ?)";

/** Returns the statement that registers a process. */
export function insertInstance(instance: Instance): Statement {
  return {
    sql: "INSERT INTO instances (id, host, pid, heartbeat_at, started_at) VALUES (?, ?, ?, ?, ?)",
    args: [instance.id, instance.host, instance.pid, instance.heartbeatAt, instance.heartbeatAt],
  };
}

/**
 * Returns the statement that records a heartbeat. If it changes no row, another process took this one for dead and
 * freed its claims.
 */
export function recordHeartbeat(id: string, now: number): Statement {
  return { sql: "UPDATE instances SET heartbeat_at = ? WHERE id = ?", args: [now, id] };
}

/** Holds while a process has had no heartbeat since it was read. A process that stood still may wake up again. */
export function silentGuard({ id, heartbeatAt }: Instance): Guard {
  return {
    sql: "EXISTS (SELECT 1 FROM instances i WHERE i.id = ? AND i.heartbeat_at = ?)",
    args: [id, heartbeatAt],
  };
}

/** Returns the statement that unregisters a process. The same write frees its claims. */
export function deleteInstance(id: string, guard: Guard = ALWAYS): Statement {
  return { sql: `DELETE FROM instances WHERE id = ? AND ${guard.sql}`, args: [id, ...guard.args] };
}

/** Returns all registered processes. */
export async function listInstances(db: Db): Promise<Instance[]> {
  const rows = await db.all<{ id: string; host: string; pid: number; heartbeat_at: number }>(
    "SELECT id, host, pid, heartbeat_at FROM instances",
  );
  return rows.map((row) => ({ id: row.id, host: row.host, pid: row.pid, heartbeatAt: row.heartbeat_at }));
}
