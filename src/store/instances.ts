import { ALWAYS, type Db, type Guard, type Statement } from "./engine/client.ts";

/** One running process, as its claims name it. */
export interface Instance {
  id: string;
  host: string;
  pid: number;
  /** Milliseconds, by its own clock. */
  heartbeatAt: number;
}

/**
 * Whether an instance is on the list: only such a process may claim. What one claims that others have taken for dead would be
 * freed by nobody once it does die.
 */
export const LISTED = "EXISTS (SELECT 1 FROM instances WHERE id = ?)";

/** Registers a process that starts. */
export function insertInstance(instance: Instance): Statement {
  return {
    sql: "INSERT INTO instances (id, host, pid, heartbeat_at, started_at) VALUES (?, ?, ?, ?, ?)",
    args: [instance.id, instance.host, instance.pid, instance.heartbeatAt, instance.heartbeatAt],
  };
}

/** Says that the process lives. No row changed: others took it for dead and freed its claims. */
export function beat(id: string, now: number): Statement {
  return { sql: "UPDATE instances SET heartbeat_at = ? WHERE id = ?", args: [now, id] };
}

/** Holds while a process has not beaten since it was read: what takes it for dead. It may have stood still, and wake up. */
export function silentGuard({ id, heartbeatAt }: Instance): Guard {
  return {
    sql: "EXISTS (SELECT 1 FROM instances i WHERE i.id = ? AND i.heartbeat_at = ?)",
    args: [id, heartbeatAt],
  };
}

/** Takes a process off the list. Its claims are freed in the same write. */
export function deleteInstance(id: string, guard: Guard = ALWAYS): Statement {
  return { sql: `DELETE FROM instances WHERE id = ? AND ${guard.sql}`, args: [id, ...guard.args] };
}

/** All processes on the list. */
export async function listInstances(db: Db): Promise<Instance[]> {
  const rows = await db.all<{ id: string; host: string; pid: number; heartbeat_at: number }>(
    "SELECT id, host, pid, heartbeat_at FROM instances",
  );
  return rows.map((row) => ({ id: row.id, host: row.host, pid: row.pid, heartbeatAt: row.heartbeat_at }));
}
