/** Marks budgets made here, so that no other file can make one without a bound. */
const MADE_HERE = Symbol("memory budget");

/**
 * Bound of the memory that a caller may use for stored content. Each function that reads bytes of stored content requires
 * one. The architecture test lists the files that may make one.
 */
export interface MemoryBudget {
  readonly [MADE_HERE]: true;
  /**
   * Runs `read`, which holds that many bytes, when there is room. Throws without running it if there will be none.
   */
  hold<Value>(octets: number, read: () => Promise<Value>): Promise<Value>;
}

/** Runs a read that holds that many bytes when there is room for it, or throws. */
export type HoldOctets = MemoryBudget["hold"];

/** Makes a budget whose reads wait for room, or are refused. */
export function waitingBudget(hold: HoldOctets): MemoryBudget {
  return { [MADE_HERE]: true, hold };
}

/** Makes a budget with a limit per read. A larger read throws. */
export function budgetOf(mostOctets: number): MemoryBudget {
  return waitingBudget(async (octets, read) => {
    if (octets > mostOctets) throw new Error(`${octets} octets of content, ${mostOctets} may be read here`);
    return read();
  });
}

/** Makes a budget for a caller that has already reserved the room, for example in `dispatch/in-flight-limits`. */
export function reservedBudget(): MemoryBudget {
  return waitingBudget((_octets, read) => read());
}
