import { StallBreaker } from "./stall-breaker.ts";
import { log } from "../../log.ts";
import { parseTransmitLane, transmitLane } from "../../queue/hint.ts";
import type { Job } from "../../queue/port.ts";
import {
  type Destination,
  isFailedLookup,
  isResting,
  type DomainQueue,
  newDomainQueue,
  type KnownRoute,
  maxInHand,
  hasNoTries,
  validMs,
  waitingByLane,
} from "./destination.ts";
import type { DispatchDeps, DispatchLimits } from "./deps.ts";
import { Destinations } from "./destinations.ts";
import { RecipientHandover } from "./handover.ts";
import { Moments } from "./moments.ts";
import { InFlight } from "./in-flight-limits.ts";
import type { Later, Ways } from "../deliver/outcome.ts";
import type { Place } from "../deliver/ways.ts";
import type { Lane } from "../lanes/lane.ts";
import { Routes } from "./routes.ts";
import { TwoPriorityQueue } from "./two-priority-queue.ts";
import { WaitingRoom } from "./waiting-room.ts";

// The order in which mail leaves.
//
// Mail waits by recipient domain until its route is found, so a name server that hangs delays only that domain. The
// route names the destination: the lane, so that all domains at one provider share its limits. A destination takes turns
// between projects, and a project's turns go round its domains. Bulk mail and retries share one turn in five. Destinations
// take turns in the same way. Those that end messages without a try have low priority.
//
// If a destination has not answered yet, one message tries it, and one more for each that gets no answer within TRIAL_MS.
// Once it answers it has its full number, at its rate. If no session can be had, or a session hangs while no other message
// gets through, the destination rests. Its messages are then deferred at once, each on its own schedule, with the reason
// found, unless their route has another way. After the rest one message tries it again. All domains without a route share
// one destination of low priority: a few messages at once end there without a try. If the resolver is out of reach, all
// mail is there, and writing a second's retries together would delay everything else.
//
// A message in progress is prepared first (claimed, composed, signed), which no peer can delay. Then it is in delivery. A
// message that waits to render a template comes again later (`deliver/admission`) and is not in progress. Deliveries are limited
// by count and octets. If peers that hang hold all of them, the oldest are aborted. Large messages have a part of the
// octets and wait for each other outside, so slow peers of large messages delay no small one.

/** Time without an answer after which one more message tries a destination, milliseconds. */
export const TRIAL_MS = 5_000;

/** Starts transmit jobs in fair order, by destination. */
export class Dispatch {
  readonly #deps: DispatchDeps;
  readonly #limits: DispatchLimits;
  readonly #inFlight: InFlight;
  readonly #stallBreaker: StallBreaker;
  readonly #moments: Moments;
  readonly #queues = new Map<string, DomainQueue>();
  readonly #routes: Routes;
  readonly #room: WaitingRoom;
  readonly #destinations: Destinations;
  /** Keys that wait or are in progress. A job that is offered again is ignored. */
  readonly #known = new Set<string>();
  /** Destinations that may start a message. Those that rest have low priority. */
  readonly #ready = new TwoPriorityQueue<Destination>();
  #inHand = 0;
  #starting = false;
  #closed = false;
  #idle: (() => void)[] = [];

  constructor(deps: DispatchDeps, limits: DispatchLimits) {
    this.#deps = deps;
    this.#limits = limits;
    this.#room = new WaitingRoom(() => limits.waiting);
    this.#routes = new Routes(deps.clock, deps.findDeliveryRoute, deps.waysOf ?? null);
    this.#inFlight = new InFlight(limits);
    this.#stallBreaker = new StallBreaker({
      clock: deps.clock,
      inFlight: this.#inFlight,
      largeMessageAdmission: deps.largeMessageAdmission,
      onChecked: () => this.#start(),
    });
    this.#destinations = new Destinations(deps.clock);
    this.#moments = new Moments(deps.clock, deps.pace, (destination) => this.#resume(destination));
  }

  /** Returns whether the job of that key waits or is in progress. */
  has(key: string): boolean {
    return this.#known.has(key);
  }

  /** Returns whether a job would be taken: it is not here yet, and its domain has room for one more. */
  wants(job: Job, retry: boolean, place = parseTransmitLane(job.lane)): boolean {
    if (this.#closed || this.#known.has(job.key)) return false;
    const queue = this.#queues.get(transmitLane(place));
    const low = retry || place.bulk;
    return this.#room.hasRoom(place.senderId, (low ? queue?.low : queue?.high)?.size ?? 0, low);
  }

  /** Takes a job. If there is no room it is dropped. Its row stays due, so the sweep brings it again. */
  offer(job: Job, retry: boolean, place = parseTransmitLane(job.lane)): void {
    if (this.wants(job, retry, place)) this.#add(job.key, place, retry);
  }

  #add(key: string, place: Place, retry: boolean): void {
    const low = retry || place.bulk;
    const name = transmitLane(place);
    const queue = this.#queues.get(name) ?? newDomainQueue(name, place);
    const keys = low ? queue.low : queue.high;
    this.#queues.set(name, queue);
    this.#known.add(key);
    keys.add(key);
    this.#room.add(place.senderId);
    if (queue.known === null) this.#lookUp(queue);
    else {
      const destination = this.#destinations.at(queue.known);
      if (keys.size === 1) destination.queues.add(queue, low);
      this.#resume(destination);
    }
  }

  /** Hears that another process, or the operator, has changed lanes. */
  lanesChanged(lanes: readonly Lane[]): void {
    for (const destination of this.#destinations.withLanes(lanes)) this.#resume(destination);
  }

  /** Returns how many recipients wait here or are in progress, by lane. */
  waitingByLane(): Map<string, number> {
    return waitingByLane(this.#queues.values());
  }

  /** Takes no more jobs, drops those that wait, and resolves when those in progress are done. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#inHand > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** Looks up the route of a domain. */
  #lookUp(queue: DomainQueue): void {
    if (queue.lookingUp) return;
    queue.lookingUp = true;
    const after = (queue.known?.lookedUpAt ?? Number.NEGATIVE_INFINITY) + 1;
    this.#routes.ways(queue, after).then((ways) => {
      queue.lookingUp = false;
      this.#setWays(queue, ways);
    });
  }

  #setWays(queue: DomainQueue, ways: Ways): void {
    const now = this.#deps.clock.elapsed();
    const route = this.#destinations.choose(ways);
    if (queue.known !== null && isFailedLookup(queue.known, route, now)) {
      queue.known.lookedUpAt = now;
      this.#resume(queue.known.destination);
      this.#dropIfIdle(queue);
      return;
    }
    this.#move(queue, { ways, route, foundAt: now, lookedUpAt: now });
    this.#dropIfIdle(queue);
  }

  /** Moves a queue to the destination of its route. */
  #move(queue: DomainQueue, found: Omit<KnownRoute, "destination">): void {
    const { route } = found;
    const before = queue.known?.destination;
    const destination = this.#destinations.of(route.destination, route.kind, route.lane ?? null);
    queue.known = { ...found, destination };
    if (before !== destination) {
      if (queue.high.size > 0) destination.queues.add(queue, false);
      if (queue.low.size > 0) destination.queues.add(queue, true);
    }
    // The old destination drops the domain when it takes it from its queue.
    if (before !== undefined && before !== destination) this.#wake(before);
    this.#resume(destination);
  }

  /** Queues a destination if it may start a message. */
  #wake(destination: Destination): void {
    if (destination.queued || !this.#mayStart(destination)) return;
    destination.queued = true;
    this.#ready.add(destination, hasNoTries(destination, this.#deps.clock.elapsed()));
  }

  #mayStart(destination: Destination): boolean {
    const now = this.#deps.clock.elapsed();
    if (destination.queues.size === 0) return false;
    if (destination.inHand >= maxInHand(destination, this.#limits, now)) return false;
    return isResting(destination, now) || this.#moments.has(destination);
  }

  /**
   * Starts all messages that may start. A message that starts calls this again. The second
   * call returns at once, so each destination gets its turn.
   */
  #start(): void {
    if (this.#starting) return;
    this.#starting = true;
    while (!this.#closed && this.#ready.size > 0) {
      if (!this.#inFlight.hasRoom()) {
        this.#stallBreaker.check();
        break;
      }
      const destination = this.#ready.take()?.item;
      if (destination === undefined) break;
      destination.queued = false;
      // It may have started to rest, or have lost its messages, since it was queued.
      if (this.#mayStart(destination)) this.#startNext(destination);
    }
    this.#starting = false;
  }

  /** Starts the next message of a destination. */
  #startNext(destination: Destination): void {
    const next = destination.queues.take();
    if (next === null) return;
    const { item: queue, low } = next;
    const keys = low ? queue.low : queue.high;
    const { known } = queue;
    // If the domain has moved to another destination, that one has it in its queue.
    const isHere = known?.destination === destination;
    const detour = isHere ? this.#destinations.detour(known) : null;
    if (isHere && detour !== null) this.#move(queue, { ...known, route: detour });
    const key = isHere && detour === null ? keys.take() : undefined;
    if (known !== null && key !== undefined) {
      if (keys.size > 0) destination.queues.add(queue, low);
      this.#room.remove(queue.senderId);
      const age = this.#deps.clock.elapsed() - known.lookedUpAt;
      if (age >= validMs(known.route, this.#deps.restMs)) this.#lookUp(queue);
      else this.#dropIfIdle(queue);
      void this.#run({ key, lane: queue.name }, low, known, destination);
    }
    this.#wake(destination);
    this.#destinations.forget(destination);
  }

  /** Runs one job, from its claim to its settlement. */
  async #run(job: Job, low: boolean, { ways, route }: KnownRoute, destination: Destination): Promise<void> {
    const { clock, restMs, transmit } = this.#deps;
    const resting = isResting(destination, clock.elapsed());
    const cancelTrial = resting || destination.answers ? null : this.#watchTrial(destination);
    const spendsMoment = !resting && destination.moment;
    if (spendsMoment) destination.moment = false;
    destination.inHand++;
    this.#inHand++;
    const hasOtherWay = () => ways.some((way) => way !== route && this.#destinations.isOpen(way));
    const handover = new RecipientHandover(
      { clock, restMs, inFlight: this.#inFlight, hasOtherWay },
      route,
      destination,
      () => this.#resume(destination),
    );
    let later: Later | null = null;
    try {
      later = await transmit(job, handover);
    } catch (error) {
      log("send").error("a transmit job failed", { key: job.key, error: String(error) });
    }
    cancelTrial?.();
    handover.end();
    // If nothing was sent, the next message gets the moment.
    if (spendsMoment && !handover.sent) destination.moment = true;
    destination.inHand--;
    this.#inHand--;
    if (later === null) this.#known.delete(job.key);
    else void this.#addLater(job, low, later);
    this.#stallBreaker.checkLarge();
    if (this.#inHand === 0) for (const resolve of this.#idle.splice(0)) resolve();
    this.#resume(destination);
  }

  /** Adds a job again later. Until then its key stays known, so that no hint adds it, but it is not in progress. */
  async #addLater(job: Job, low: boolean, { until }: Later): Promise<void> {
    await until;
    if (this.#closed) this.#known.delete(job.key);
    else this.#add(job.key, parseTransmitLane(job.lane), low);
  }

  /** Lets one more message try a destination that does not answer this one. */
  #watchTrial(destination: Destination): () => void {
    return this.#deps.clock.after(TRIAL_MS, () => {
      if (!destination.answers) destination.trials++;
      this.#resume(destination);
    });
  }

  #resume(destination: Destination): void {
    const { rest } = destination;
    if (rest?.watched === false) {
      rest.watched = true;
      this.#deps.clock.after(rest.until - this.#deps.clock.elapsed(), () => this.#resume(destination));
    }
    this.#wake(destination);
    this.#start();
    this.#destinations.forget(destination);
  }

  #dropIfIdle(queue: DomainQueue): void {
    if (queue.high.size + queue.low.size === 0 && !queue.lookingUp) this.#queues.delete(queue.name);
  }
}
