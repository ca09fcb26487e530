import type { Clock } from "../../core/clock.ts";
import { Clearing } from "./clearing.ts";
import { log } from "../../log.ts";
import type { Job } from "../../queue/port.ts";
import {
  type Destination,
  isLapse,
  isResting,
  type Line,
  newLine,
  type PlaceLimits,
  places,
  triesNothing,
  validMs,
} from "./destination.ts";
import { Destinations } from "./destinations.ts";
import { type Handover, OneHandover } from "./handover.ts";
import { Moments } from "./moments.ts";
import type { Pace } from "./pacer.ts";
import { Room, type RoomLimits } from "./room.ts";
import { lostPassage } from "../send/deliver.ts";
import type { FindPassage, Later, Passage } from "../send/outcome.ts";
import type { Seats } from "../send/seats.ts";
import { Turns } from "./turns.ts";

// The order in which mail leaves.
//
// Mail waits by recipient domain, in lines. Before any of it is taken up, the way of the domain is looked up; a name
// server that hangs holds that domain's line and nothing else. The way names the destination: the set of MX hosts, so
// that all domains at one provider share its limits. A destination gives its lines turns, and within it mail that was
// not tried yet goes before retries, which have one turn in five. Destinations give each other turns likewise; those
// whose mail is only put off come behind.
//
// A destination that has not answered yet is tried by one mail, by one more for each that gets no answer within
// TRIAL_MS. Once it answers it has its full number, at its rate. If no session can be had, or one is waited for in
// vain while none of its other mail gets through, it rests: its mail is put off at once, each on its own schedule, with
// what was found as the reason. After the rest one mail tries it again. All mail whose way cannot be found shares one
// destination, which goes behind as one that rests does: a few at a time end there without a try. With a resolver out of
// reach that is all mail, and a second's retries written together would hold everybody up.
//
// Mail in hand is at the desk first (claimed, composed, signed), which no peer can hold up, then under way. What waits for its
// project's turn at rendering templates is told to come later (`send/seats`), and holds no place. Places for
// mail under way are many and bounded by count and octets; where peers that hang hold all of them, the longest waits
// are ended. Large mail has a part of the octets and waits for its own kind, likewise without a place: a few peers that take
// theirs slowly hold up no small one. So what a destination does costs the others nothing, and a bounded amount of memory.

/** Time without an answer after which a destination in doubt is tried by one mail more, milliseconds. */
export const TRIAL_MS = 5_000;

export interface DispatchLimits extends PlaceLimits, RoomLimits {
  /** Recipients that wait here; more stay in the database, and the sweep brings them. */
  waiting: number;
}

export interface DispatchDeps {
  clock: Clock;
  findPassage: FindPassage;
  /** Moments for mail to somebody else's hosts; null where there is no limit. */
  pace: Pace | null;
  /** Time that a destination rests after it could not be reached, milliseconds. */
  restMs: number;
  /** What large mails take their octets from; left out: there is no bound but that of the room. */
  largeMailSeats?: Pick<Seats, "lacking">;
  /** Does a job. Gives when it is to come again; null: it is over. */
  transmit: (job: Job, handover: Handover) => Promise<Later | null>;
}

/** Mail on its way out, by destination. */
export class Dispatch {
  readonly #deps: DispatchDeps;
  readonly #limits: DispatchLimits;
  readonly #room: Room;
  readonly #clearing: Clearing;
  readonly #moments: Moments;
  readonly #lines = new Map<string, Line>();
  readonly #destinations: Destinations;
  /** Keys that wait or are in hand: a job offered again is the same job. */
  readonly #known = new Set<string>();
  /** Destinations that may begin something; behind: those that rest. */
  readonly #ready = new Turns<Destination>();
  #waiting = 0;
  #inHand = 0;
  #starting = false;
  #closed = false;
  #idle: (() => void)[] = [];

  constructor(deps: DispatchDeps, limits: DispatchLimits) {
    this.#deps = deps;
    this.#limits = limits;
    this.#room = new Room(limits);
    this.#clearing = new Clearing({
      ...{ clock: deps.clock, room: this.#room, largeMailSeats: deps.largeMailSeats },
      looked: () => this.#start(),
    });
    this.#destinations = new Destinations(deps.clock);
    this.#moments = new Moments(deps.clock, deps.pace, (destination) => this.#resume(destination));
  }

  /** Whether the job of that key waits or is in hand. */
  has(key: string): boolean {
    return this.#known.has(key);
  }

  /** Whether a job of that kind would be taken: it is not here yet, and there is room for its line. */
  wants(job: Job, retry: boolean): boolean {
    if (this.#closed || this.#known.has(job.key)) return false;
    const line = this.#lines.get(job.lane);
    const row = retry ? line?.retries : line?.fresh;
    return (row?.size ?? 0) < this.#share(retry);
  }

  /** Takes a job. Where there is no room it is let go: its row stays due, and the sweep brings it again. */
  offer(job: Job, retry: boolean): void {
    if (this.wants(job, retry)) this.#add(job, retry);
  }

  #add(job: Job, retry: boolean): void {
    const line = this.#lines.get(job.lane) ?? newLine(job.lane);
    const row = retry ? line.retries : line.fresh;
    this.#lines.set(line.domain, line);
    this.#known.add(job.key);
    row.add(job.key);
    this.#waiting++;
    if (line.place === null) this.#look(line);
    else {
      const destination = this.#destinations.at(line.place);
      if (row.size === 1) destination.turns.add(line, retry);
      this.#resume(destination);
    }
  }

  /** Takes no more jobs, forgets those that wait, and resolves when the ones in hand are done. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#inHand > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /**
   * Mail of one line that may wait here: a share of the room that is left. However much one line brings, others find
   * room, and mail not tried yet finds it where retries have filled theirs.
   */
  #share(retry: boolean): number {
    return (this.#limits.waiting - this.#waiting) / (retry ? 4 : 2);
  }

  /** Looks the way of a line up. */
  #look(line: Line): void {
    if (line.looking) return;
    line.looking = true;
    this.#deps
      .findPassage(line.domain)
      .catch((error: unknown): Passage => {
        log("send").error("no way was found", { domain: line.domain, error: String(error) });
        return lostPassage(this.#deps.clock);
      })
      .then((passage) => {
        line.looking = false;
        this.#settle(line, passage);
      });
  }

  /** Puts a line where its mail goes. */
  #settle(line: Line, passage: Passage): void {
    const now = this.#deps.clock.now();
    if (line.place !== null && isLapse(line.place, passage, now)) {
      line.place.lookedAt = now;
      this.#resume(line.place.destination);
      this.#forgetLine(line);
      return;
    }
    const { destination: key, kind } = passage;
    const before = line.place?.destination;
    const destination = this.#destinations.of(key, kind);
    line.place = { passage, destination, foundAt: now, lookedAt: now };
    if (before !== destination) {
      if (line.fresh.size > 0) destination.turns.add(line, false);
      if (line.retries.size > 0) destination.turns.add(line, true);
    }
    // What has left its old place is taken off its row there.
    if (before !== undefined && before !== destination) this.#wake(before);
    this.#resume(destination);
    this.#forgetLine(line);
  }

  /** Puts a destination in the row of those that may begin something, if it may. */
  #wake(destination: Destination): void {
    if (destination.queued || !this.#mayBegin(destination)) return;
    destination.queued = true;
    this.#ready.add(destination, triesNothing(destination, this.#deps.clock.now()));
  }

  #mayBegin(destination: Destination): boolean {
    const now = this.#deps.clock.now();
    if (destination.turns.size === 0) return false;
    if (destination.inHand >= places(destination, this.#limits, now)) return false;
    return isResting(destination, now) || this.#moments.has(destination);
  }

  /** Begins what may begin. What is begun calls here again: each mail has its turn, not the first its followers. */
  #start(): void {
    if (this.#starting) return;
    this.#starting = true;
    while (!this.#closed && this.#ready.size > 0) {
      if (!this.#room.isFree()) {
        this.#clearing.look();
        break;
      }
      const destination = this.#ready.take()?.item;
      if (destination === undefined) break;
      destination.queued = false;
      // It may have come to rest, or to an end, since it was put there.
      if (this.#mayBegin(destination)) this.#next(destination);
    }
    this.#starting = false;
  }

  /** Begins the next mail of a destination. */
  #next(destination: Destination): void {
    const turn = destination.turns.take();
    if (turn === null) return;
    const { item: line, behind: retry } = turn;
    const row = retry ? line.retries : line.fresh;
    const { place } = line;
    // A line that has moved since has its turns at its new place.
    const key = place?.destination === destination ? row.take() : undefined;
    if (place !== null && key !== undefined) {
      if (row.size > 0) destination.turns.add(line, retry);
      this.#waiting--;
      if (Math.abs(this.#deps.clock.now() - place.lookedAt) >= validMs(place.passage, this.#deps.restMs))
        this.#look(line);
      else this.#forgetLine(line);
      void this.#carry({ key, lane: line.domain }, retry, place.passage, destination);
    }
    this.#wake(destination);
    this.#destinations.forget(destination);
  }

  /** One mail from its claim to its settlement. */
  async #carry(job: Job, retry: boolean, passage: Passage, destination: Destination): Promise<void> {
    const { clock, restMs, transmit } = this.#deps;
    const resting = isResting(destination, clock.now());
    const cancelTrial = resting || destination.answers ? null : this.#watchTrial(destination);
    const spendsMoment = !resting && destination.moment;
    if (spendsMoment) destination.moment = false;
    destination.inHand++;
    this.#inHand++;
    const handover = new OneHandover({ clock, restMs, room: this.#room }, passage, destination, (rests) => {
      if (rests) clock.after(restMs, () => this.#resume(destination));
      this.#resume(destination);
    });
    let later: Later | null = null;
    try {
      later = await transmit(job, handover);
    } catch (error) {
      log("send").error("a transmit job failed", { key: job.key, error: String(error) });
    }
    cancelTrial?.();
    handover.end();
    // Nothing was sent: the next mail may have the moment.
    if (spendsMoment && !handover.sent) destination.moment = true;
    destination.inHand--;
    this.#inHand--;
    if (later === null) this.#known.delete(job.key);
    else void this.#offerAgain(job, retry, later);
    this.#clearing.lookForLarge();
    if (this.#inHand === 0) for (const resolve of this.#idle.splice(0)) resolve();
    this.#resume(destination);
  }

  /** Until then it is known, so that no hint brings it, and holds no place. */
  async #offerAgain(job: Job, retry: boolean, { until }: Later): Promise<void> {
    await until;
    if (this.#closed) this.#known.delete(job.key);
    else this.#add(job, retry);
  }

  /** Lets one mail more try a destination that lets this one wait. */
  #watchTrial(destination: Destination): () => void {
    return this.#deps.clock.after(TRIAL_MS, () => {
      if (!destination.answers) destination.trials++;
      this.#resume(destination);
    });
  }

  #resume(destination: Destination): void {
    this.#wake(destination);
    this.#start();
    this.#destinations.forget(destination);
  }

  #forgetLine(line: Line): void {
    if (line.fresh.size + line.retries.size === 0 && !line.looking) this.#lines.delete(line.domain);
  }
}
