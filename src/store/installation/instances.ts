import { plain, table } from "../engine/columns.ts";
import { ALWAYS, type Db, type Guard, type Statement } from "../engine/client.ts";

/** One running process. Its claims name it by its id. */
export interface Instance {
  id: string;
  host: string;
  pid: number;
  /** Milliseconds, by its own clock. */
  heartbeatAt: number;
  /** Ids of the master keys that it uses, with spaces; the first one seals. */
  masterKeys: string;
}

/**
 * The condition that an instance is registered: only such a process may claim. If an unregistered process claimed a
 * row and died, no process would free the row.
 */
export const IS_REGISTERED = "EXISTS (SELECT 1 FROM instances WHERE id = ?)";

const INSTANCES = table<Instance>("instances", {
  id: plain("id"),
  host: plain("host"),
  pid: plain("pid"),
  heartbeatAt: plain("heartbeat_at"),
  masterKeys: plain("master_keys"),
});

/** Returns the statement that registers a process. */
export function insertInstance(instance: Instance): Statement {
  return {
    sql: `INSERT INTO instances (${INSTANCES.columns}, started_at) VALUES (?1, ?2, ?3, ?4, ?5, ?4)`,
    args: INSTANCES.values(instance),
  };
}

/**
 * Returns the statement that records a heartbeat. If it changes no row, another process took this one for dead and
 * freed its claims.
 */
export function recordHeartbeat({ id, heartbeatAt, masterKeys }: Instance): Statement {
  return {
    sql: "UPDATE instances SET heartbeat_at = ?, master_keys = ? WHERE id = ?",
    args: [heartbeatAt, masterKeys, id],
  };
}

/** Holds while a process has had no heartbeat since it was read. A process that stood still may wake up again. */
export function silentGuard({ id, heartbeatAt }: Instance): Guard {
  return {
    sql: "EXISTS (SELECT 1 FROM instances i WHERE i.id = ? AND i.heartbeat_at = ?)",
    args: [id, heartbeatAt],
  };
}

/** Returns the statement that unregisters a process. This write also frees its claims. */
export function deleteInstance(id: string, guard: Guard = ALWAYS): Statement {
  return { sql: `DELETE FROM instances WHERE id = ? AND ${guard.sql}`, args: [id, ...guard.args] };
}

/** Returns all registered processes. */
export function listInstances(db: Db): Promise<Instance[]> {
  return INSTANCES.all(db, "", []);
}
