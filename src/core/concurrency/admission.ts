/** The resources that one caller asks an admission for. */
export interface Demand {
  /** The demand's owner, for example a project's id. */
  owner: string;
  /** A part of the owner that should not wait for its other parts, for example a recipient's domain. */
  part?: string;
  /** Bytes, or 1 for a task; never negative. */
  weight: number;
}

export interface AdmissionLimits {
  /** Weight admitted at once over all owners. If nothing is admitted, a demand of any weight is. */
  total: number;
  /** Weight admitted at once for one owner. If an owner holds nothing, a demand of any weight is within it. */
  perOwner: number;
  /** Demands that may wait. One owner's demands may be at most as many as the places left, so alone it takes half. */
  maxWaiting: number;
}

/**
 * Gives back an admitted demand's weight, or all of it but `rest`, if the demand turns out lighter than its owner said.
 * If nothing more is held than the rest, a call does nothing.
 */
export type Release = (rest?: number) => void;

interface Waiter {
  part: Part;
  weight: number;
  admit: (release: Release) => void;
}

interface Part {
  name: string;
  held: number;
  /** Demands that wait, oldest first. A set, so that one that gives up leaves it at no cost. */
  waiting: Set<Waiter>;
}

interface Owner {
  name: string;
  held: number;
  waiting: number;
  /** Parts that hold or wait, in the order of their turns. */
  parts: Map<string, Part>;
}

/** A demand that waits, and its owner. */
interface Next {
  owner: Owner;
  waiter: Waiter;
}

/**
 * A weighted semaphore that is fair between owners: the next demand admitted belongs to the waiting owner that holds
 * least. If several hold as little, they take turns. The parts of an owner share what it gets by the same rule, and one
 * part's demands are admitted in their order. A heavy demand at the front is waited for, so light demands cannot starve
 * it.
 */
export class Admission {
  readonly #limits: AdmissionLimits;
  /** Owners that hold or wait. */
  readonly #owners = new Map<string, Owner>();
  /** Owners with demands that wait, in the order of their turns. */
  readonly #queue = new Set<Owner>();
  #held = 0;
  #waiting = 0;
  /** Result of `#next`. Undefined if weights or the queue have changed since. */
  #foundNext: Next | null | undefined;

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
  }

  /** Weight admitted now. */
  get held(): number {
    return this.#held;
  }

  /** Number of demands that wait now. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Weight to give back before the next demand is admitted. 0 if none waits, or each only for its own owner. */
  get lacking(): number {
    const next = this.#next();
    return next === null ? 0 : Math.max(0, this.#held + next.waiter.weight - this.#limits.total);
  }

  /** Admits the demand now. Returns null if it would have to wait. */
  tryEnter({ owner: name, part = "", weight }: Demand): Release | null {
    const owner = this.#owners.get(name) ?? newOwner(name);
    if (owner.waiting > 0 || !this.#fitsOwner(owner, weight) || !this.#fitsTotal(weight)) return null;
    const next = this.#next();
    return next === null || owner.held < next.owner.held
      ? this.#admit(owner, partOf(owner, part), weight)
      : null;
  }

  /**
   * Waits until the demand is admitted. Returns null at once if too many demands wait already.
   * @param signal ends the wait; the promise then rejects with the signal's reason
   */
  enter(demand: Demand, signal?: AbortSignal): Promise<Release> | null {
    if (signal?.aborted === true) return Promise.reject(signal.reason);
    const release = this.tryEnter(demand);
    if (release !== null) return Promise.resolve(release);
    const owner = this.#owners.get(demand.owner) ?? newOwner(demand.owner);
    if (owner.waiting >= this.#limits.maxWaiting - this.#waiting) return null;
    return this.#wait(owner, demand, signal);
  }

  /** Runs the task once its demand is admitted. Returns null at once if too many demands wait already. */
  run<Value>(demand: Demand, task: () => Promise<Value>): Promise<Value> | null {
    const entering = this.enter(demand);
    return entering === null ? null : runThenRelease(entering, task);
  }

  #wait(owner: Owner, { part: name = "", weight }: Demand, signal?: AbortSignal): Promise<Release> {
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.#leaveQueue(owner, waiter);
        reject(signal?.reason);
        this.#admitWaiting();
      };
      const admit = (release: Release): void => {
        signal?.removeEventListener("abort", giveUp);
        resolve(release);
      };
      const part = partOf(owner, name);
      const waiter: Waiter = { part, weight, admit };
      this.#owners.set(owner.name, owner);
      this.#queue.add(owner);
      part.waiting.add(waiter);
      if (owner.waiting++ === 0) this.#considerNext({ owner, waiter });
      else this.#foundNext = undefined;
      this.#waiting++;
      signal?.addEventListener("abort", giveUp, { once: true });
    });
  }

  #admit(owner: Owner, part: Part, weight: number): Release {
    this.#foundNext = undefined;
    this.#owners.set(owner.name, owner);
    // Its turn is over: the part's further demands go after those of other parts.
    owner.parts.delete(part.name);
    owner.parts.set(part.name, part);
    part.held += weight;
    owner.held += weight;
    this.#held += weight;
    let left = weight;
    return (rest = 0) => {
      const given = left - rest;
      if (given <= 0) return;
      left = rest;
      this.#foundNext = undefined;
      part.held -= given;
      owner.held -= given;
      this.#held -= given;
      this.#forgetIfIdle(owner, part);
      this.#admitWaiting();
    };
  }

  #admitWaiting(): void {
    for (let next = this.#next(); next !== null; next = this.#next()) {
      const { owner, waiter } = next;
      if (!this.#fitsTotal(waiter.weight)) return;
      this.#leaveQueue(owner, waiter);
      const release = this.#admit(owner, waiter.part, waiter.weight);
      // Its turn is over: the owner's further demands go after those of other owners.
      if (this.#queue.delete(owner)) this.#queue.add(owner);
      waiter.admit(release);
    }
  }

  /**
   * Returns the oldest demand of the waiting owner that holds least, of owners whose demand is within their limit.
   * Between calls of this class's methods it is null or a demand that is too heavy for what is left.
   */
  #next(): Next | null {
    if (this.#foundNext !== undefined) return this.#foundNext;
    this.#foundNext = null;
    for (const owner of this.#queue) {
      const waiter = oldestOf(owner);
      if (waiter !== null) this.#considerNext({ owner, waiter });
    }
    return this.#foundNext;
  }

  /** Takes the demand as the next one if it goes before the one found so far. */
  #considerNext(demand: Next): void {
    const found = this.#foundNext;
    if (found === undefined || !this.#fitsOwner(demand.owner, demand.waiter.weight)) return;
    if (found === null || demand.owner.held < found.owner.held) this.#foundNext = demand;
  }

  #leaveQueue(owner: Owner, waiter: Waiter): void {
    this.#foundNext = undefined;
    waiter.part.waiting.delete(waiter);
    owner.waiting--;
    this.#waiting--;
    if (owner.waiting === 0) this.#queue.delete(owner);
    this.#forgetIfIdle(owner, waiter.part);
  }

  #fitsOwner(owner: Owner, weight: number): boolean {
    return owner.held === 0 || owner.held + weight <= this.#limits.perOwner;
  }

  #fitsTotal(weight: number): boolean {
    return this.#held === 0 || this.#held + weight <= this.#limits.total;
  }

  #forgetIfIdle(owner: Owner, part: Part): void {
    if (part.held === 0 && part.waiting.size === 0) owner.parts.delete(part.name);
    if (owner.held === 0 && owner.waiting === 0) this.#owners.delete(owner.name);
  }
}

function newOwner(name: string): Owner {
  return { name, held: 0, waiting: 0, parts: new Map() };
}

function partOf({ parts }: Owner, name: string): Part {
  const part = parts.get(name) ?? { name, held: 0, waiting: new Set() };
  parts.set(name, part);
  return part;
}

/** Returns the oldest demand of the waiting part that holds least. */
function oldestOf({ parts }: Owner): Waiter | null {
  let least: Part | null = null;
  for (const part of parts.values())
    if (part.waiting.size > 0 && (least === null || part.held < least.held)) least = part;
  for (const oldest of least?.waiting ?? []) return oldest;
  return null;
}

async function runThenRelease<Value>(entering: Promise<Release>, task: () => Promise<Value>): Promise<Value> {
  const release = await entering;
  try {
    return await task();
  } finally {
    release();
  }
}

/** Runs a task when a place is free, in the order of the calls. Resolves to null if too many tasks wait already. */
export type TaskLimit = <Value>(task: () => Promise<Value>) => Promise<Value | null>;

/** Limits how many tasks run at once, and how many more may wait. */
export function createTaskLimit(atOnce: number, maxWaiting: number): TaskLimit {
  // All tasks have one owner, which alone may take half of the places that wait.
  const admission = new Admission({ total: atOnce, perOwner: atOnce, maxWaiting: 2 * maxWaiting });
  return async (task) => admission.run({ owner: "", weight: 1 }, task);
}
