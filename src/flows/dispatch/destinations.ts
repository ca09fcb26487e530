import type { Clock } from "../../core/time/clock.ts";
import type { DeliveryRoute, DeliveryRouteKind, Ways } from "../deliver/outcome.ts";
import type { Lane } from "../lanes/lane.ts";
import {
  type Destination,
  isResting,
  newDestination,
  type KnownRoute,
  PUT_OFF_MS,
  restWithLane,
} from "./destination.ts";

/** Maximum number of resting destinations without mail that are remembered. The oldest is dropped. */
export const MAX_REMEMBERED = 10_000;

/** Destinations that have mail or rest. There is one per key, because two would have twice its limits. */
export class Destinations {
  readonly #clock: Clock;
  readonly #byKey = new Map<string, Destination>();
  /** Destinations that are kept only because they rest. */
  readonly #remembered = new Set<Destination>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the destination of that key, a new one if there is none. */
  of(key: string, kind: DeliveryRouteKind, lane: Lane | null = null): Destination {
    const destination = this.#byKey.get(key) ?? newDestination(key, kind, lane);
    // A relay has another lane once its rate has changed.
    if (lane !== null) destination.lane = lane;
    restWithLane(destination, this.#clock.elapsed());
    this.#byKey.set(key, destination);
    this.#remembered.delete(destination);
    return destination;
  }

  /** Returns the first way whose destination does not rest; if all do, the first. */
  choose(ways: Ways): DeliveryRoute {
    return ways.find((way) => this.isOpen(way)) ?? ways[0];
  }

  /** Returns the way to take in place of one that rests. Null if there is none. */
  detour({ ways, route, destination }: KnownRoute): DeliveryRoute | null {
    if (ways.length < 2 || !isResting(destination, this.#clock.elapsed())) return null;
    const other = this.choose(ways);
    return other.destination === route.destination ? null : other;
  }

  /** Returns whether messages may take a way now. */
  isOpen({ destination: key, lane, overflowOf }: DeliveryRoute): boolean {
    if (overflowOf !== undefined && overflowOf.warmUpReason === null) return false;
    const destination = this.#byKey.get(key);
    if (destination !== undefined && isResting(destination, this.#clock.elapsed())) return false;
    return (lane?.opensInMs ?? 0) <= PUT_OFF_MS;
  }

  /** Lets the destinations of some lanes rest as long as those do. Returns them. */
  withLanes(lanes: readonly Lane[]): Destination[] {
    const found = lanes.flatMap(({ name }) => this.#byKey.get(`mx:${name}`) ?? []);
    for (const destination of found) restWithLane(destination, this.#clock.elapsed());
    return found;
  }

  /** Returns the destination of a route. If it was dropped while it had no mail, it may have been created again. */
  at(known: KnownRoute): Destination {
    const { key } = known.destination;
    const destination = this.#byKey.get(key) ?? known.destination;
    this.#byKey.set(key, destination);
    this.#remembered.delete(destination);
    known.destination = destination;
    return destination;
  }

  /** Drops a destination without mail, unless it rests. */
  forget(destination: Destination): void {
    if (destination.queues.size + destination.inHand > 0) return;
    if (isResting(destination, this.#clock.elapsed())) this.#remembered.add(destination);
    else this.#drop(destination);
    const [oldest] = this.#remembered;
    if (this.#remembered.size > MAX_REMEMBERED && oldest !== undefined) this.#drop(oldest);
  }

  #drop(destination: Destination): void {
    this.#remembered.delete(destination);
    if (this.#byKey.get(destination.key) === destination) this.#byKey.delete(destination.key);
  }
}
