import type { Queue } from "../queue/port.ts";
import type { Store } from "../store/engine/client.ts";

/** The store, and the queue that hears which of its rows are due. */
export interface Outbox extends Store {
  queue: Queue;
}
