import { AsyncLocalStorage } from "node:async_hooks";

/** The one who makes changes. `none`: rows go with their project or with the data of a person, whose removal is one change. */
export interface Actor {
  type: "member" | "key" | "cli" | "service" | "none";
  id: string | null;
  name: string | null;
  /** Address of the client. */
  ip: string | null;
  requestId: string | null;
}

/** The actor of rows that the audit trail does not have one by one. */
export const NOBODY: Actor = { type: "none", id: null, name: null, ip: null, requestId: null };

const SERVICE: Actor = { type: "service", id: null, name: null, ip: null, requestId: null };

const acting = new AsyncLocalStorage<Actor>();

/** Runs a task in an actor's name: the audit trail says that the actor made its changes. */
export function actingAs<Result>(actor: Actor, task: () => Result): Result {
  return acting.run(actor, task);
}

/** Runs a task that the service does later anyway, such as a delivery that a request has hinted. */
export function actingAsService<Result>(task: () => Result): Result {
  return actingAs(SERVICE, task);
}

/** Returns who acts now. It is the service itself, unless a request, a command or a removal does. */
export function currentActor(): Actor {
  return acting.getStore() ?? SERVICE;
}
