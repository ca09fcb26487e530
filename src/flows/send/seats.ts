import type { Clock } from "../../core/clock.ts";
import { Fifo } from "../../core/fifo.ts";

/** How much may be taken at a time. */
export interface SeatLimits {
  /** By all projects together. One mail alone may always sit down, however much it takes. */
  total: number;
  /** By one project. */
  ofProject: number;
}

/**
 * For mails whose templates are rendered, in mails. The thread that renders does a project's one after another, so it has the
 * next ones at hand; the rest waits outside, with nothing in memory but its key. What is left of the desk is for mail that
 * waits for no rendering.
 */
export const RENDERING_SEATS: SeatLimits = { total: 32, ofProject: 16 };

/** Octets from which a mail is large. */
export const LARGE_MAIL_OCTETS = 256 * 1024;
/**
 * For large mails that are composed or under way, in octets. What is left of the room (`dispatch/room`) is for all others, whatever the
 * peers of large ones do.
 */
export const LARGE_MAIL_SEATS: SeatLimits = { total: 96 * 1024 * 1024, ofProject: Infinity };

/** Mails that wait outside at most. A project's have half of what is left, so others find room. */
export const MAX_OUTSIDE = 20_000;
/** Time between two looks for seats that nobody who was called has taken, milliseconds. */
export const LOOK_MS = 1_000;

/** A mail that asks for a seat. */
export interface Asking {
  senderId: string;
  /** Its recipient's domain, where what its peers keep others of the same project from is to be shared among them. */
  lane?: string;
  key: string;
  /** How much it takes; 1 where left out. */
  weight?: number;
}

/** A mail that waits outside. */
interface Guest {
  key: string;
  weight: number;
  comeIn: () => void;
}

interface Project {
  /** What its mails hold, or are called in to. */
  held: number;
  outside: number;
  readonly rows: Map<string, Row>;
}

/** Those of one lane, in the order of coming. */
interface Row {
  readonly project: Project;
  held: number;
  readonly outside: Fifo<Guest>;
}

/**
 * Seats for mails that take something everybody needs and may keep it long: without them one project's would take all places at the
 * desk (`dispatch/room`), or all octets, and everybody's mail wait for it.
 */
export class Seats {
  readonly #clock: Clock;
  readonly #limits: SeatLimits;
  readonly #projects = new Map<string, Project>();
  /** Mails called since the last look that have not come yet. What they take is kept for them. */
  readonly #called = new Map<string, { row: Row; weight: number }>();
  #held = 0;
  #outside = 0;
  #lacking = 0;
  #looking = false;

  constructor(clock: Clock, limits: SeatLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** What is missing for the mail whose turn it is; 0 where none waits for others than those of its own project. */
  get lacking(): number {
    return this.#lacking;
  }

  /** A seat, as what gives it back, once or several times. Null: there is none for the project now, or others are before it. */
  take(asking: Asking): (() => void) | null {
    const { key, weight = 1 } = asking;
    const row = this.#rowOf(asking);
    const called = this.#called.get(key);
    if (called !== undefined) this.#uncall(key, called);
    else if (row.project.outside > 0 || this.#lacking > 0) return null;
    if (!this.#fits(row, weight) || this.#lackingFor(weight) > 0) return null;
    this.#hold(row, weight);
    let given = false;
    return () => {
      if (given) return;
      given = true;
      this.#hold(row, -weight);
      this.#forget(asking, row);
      this.#call();
    };
  }

  /**
   * Resolves when there may be a seat, which is kept for a while. Null where too many wait: whoever asks lets the
   * mail be, and the sweep brings it again.
   */
  free(asking: Asking): Promise<void> | null {
    const { key, weight = 1 } = asking;
    const row = this.#rowOf(asking);
    const { project } = row;
    if (project.outside >= (MAX_OUTSIDE - this.#outside) / 2) return null;
    // Nobody leaves between the look for a seat and this: it is not called at once, but it may be whose turn it is.
    if (this.#lacking === 0 && project.outside === 0 && this.#fits(row, weight))
      this.#lacking = this.#lackingFor(weight);
    project.outside++;
    this.#outside++;
    this.#lookLater();
    return new Promise((comeIn) => row.outside.add({ key, weight, comeIn }));
  }

  #rowOf({ senderId, lane = "" }: Asking): Row {
    const project = this.#projects.get(senderId) ?? { held: 0, outside: 0, rows: new Map<string, Row>() };
    this.#projects.set(senderId, project);
    const row = project.rows.get(lane) ?? { project, held: 0, outside: new Fifo<Guest>() };
    project.rows.set(lane, row);
    return row;
  }

  #forget({ senderId, lane = "" }: Pick<Asking, "senderId" | "lane">, row: Row): void {
    const { project } = row;
    if (row.held === 0 && row.outside.size === 0) project.rows.delete(lane);
    if (project.rows.size === 0) this.#projects.delete(senderId);
  }

  #hold(row: Row, weight: number): void {
    row.held += weight;
    row.project.held += weight;
    this.#held += weight;
  }

  #uncall(key: string, { row, weight }: { row: Row; weight: number }): void {
    this.#called.delete(key);
    this.#hold(row, -weight);
  }

  /** Whether its project may have it. */
  #fits({ project }: Row, weight: number): boolean {
    return project.held === 0 || project.held + weight <= this.#limits.ofProject;
  }

  /** What all hold too much for it. */
  #lackingFor(weight: number): number {
    return this.#held === 0 ? 0 : Math.max(0, this.#held + weight - this.#limits.total);
  }

  /**
   * Calls as many in as there are seats for, each of the project that has the least, and of its lane that has. Where that one finds
   * too little nobody goes before it: what takes much would wait for ever beside what takes little.
   */
  #call(): void {
    this.#lacking = 0;
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const { row, guest } = next;
      this.#lacking = this.#lackingFor(guest.weight);
      if (this.#lacking > 0) return;
      row.outside.take();
      row.project.outside--;
      this.#outside--;
      this.#called.set(guest.key, { row, weight: guest.weight });
      this.#hold(row, guest.weight);
      guest.comeIn();
    }
  }

  /** Whose turn it is, of those whose project may have more. */
  #next(): { row: Row; guest: Guest } | undefined {
    if (this.#outside === 0) return undefined;
    let next: { row: Row; guest: Guest } | undefined;
    for (const project of this.#projects.values()) {
      if (project.outside === 0 || (next !== undefined && next.row.project.held <= project.held)) continue;
      const row = leastHeld(project);
      const guest = row?.outside.first;
      if (row !== undefined && guest !== undefined && this.#fits(row, guest.weight)) next = { row, guest };
    }
    return next;
  }

  /** Who was called may not come: its mail was canceled, or waits for its destination. Its call must not hold up the others. */
  #lookLater(): void {
    if (this.#looking) return;
    this.#looking = true;
    this.#clock.after(LOOK_MS, () => {
      this.#looking = false;
      for (const [key, called] of this.#called) this.#uncall(key, called);
      for (const [senderId, { rows }] of this.#projects)
        for (const [lane, row] of rows) this.#forget({ senderId, lane }, row);
      this.#call();
      if (this.#outside + this.#called.size > 0) this.#lookLater();
    });
  }
}

/** Of the lanes that wait the one that has the least. */
function leastHeld({ rows }: Project): Row | undefined {
  let least: Row | undefined;
  for (const row of rows.values())
    if (row.outside.size > 0 && (least === undefined || row.held < least.held)) least = row;
  return least;
}
