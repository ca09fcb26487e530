import { setBounded } from "../../core/collections.ts";
import type { Clock } from "../../core/time/clock.ts";
import { log } from "../../log.ts";
import { unroutable } from "../deliver/deliver.ts";
import type { DeliveryRoute, FindDeliveryRoute, Ways } from "../deliver/outcome.ts";
import { ROUTE_REFRESH_MS } from "./destination.ts";
import { defaultWays, type FindWays, type Place } from "../deliver/ways.ts";

/** Domains whose lookup is pending or recent. Beyond this number, the oldest needs another lookup. */
const MAX_REMEMBERED = 10_000;

/** Finds the routes of domains. The projects that send to a domain share each lookup. */
export class Routes {
  readonly #clock: Clock;
  readonly #ask: FindDeliveryRoute;
  readonly #waysOf: FindWays | null;
  readonly #lookups = new Map<string, { since: number; route: Promise<DeliveryRoute> }>();

  constructor(clock: Clock, find: FindDeliveryRoute, waysOf: FindWays | null) {
    this.#clock = clock;
    this.#ask = find;
    this.#waysOf = waysOf;
  }

  /** Returns the ways of a queue's messages, in order of preference. */
  async ways(place: Place, before: number): Promise<Ways> {
    const find = () => this.#find(place.domain, before);
    try {
      return await (this.#waysOf?.(place, find) ?? defaultWays(await find(), place));
    } catch (error) {
      log("send").error("the routes of a project failed", { ...place, error: String(error) });
      return [unroutable(this.#clock)];
    }
  }

  /** @param before a lookup that began before this moment is repeated, in `Clock.elapsed` */
  #find(domain: string, before: number): Promise<DeliveryRoute> {
    const known = this.#lookups.get(domain);
    if (known !== undefined && known.since >= Math.max(before, this.#clock.elapsed() - ROUTE_REFRESH_MS))
      return known.route;
    const route = this.#ask(domain).catch((error: unknown): DeliveryRoute => {
      log("send").error("the lookup of a route failed", { domain, error: String(error) });
      return unroutable(this.#clock);
    });
    setBounded(this.#lookups, domain, { since: this.#clock.elapsed(), route }, MAX_REMEMBERED);
    void route.then((found) => this.#forgetFailure(domain, route, found));
    return route;
  }

  /** A lookup that failed is repeated whenever a project asks. */
  #forgetFailure(domain: string, route: Promise<DeliveryRoute>, { knownOutcome }: DeliveryRoute): void {
    if (knownOutcome !== null && this.#lookups.get(domain)?.route === route) this.#lookups.delete(domain);
  }
}
