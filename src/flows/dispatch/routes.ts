import { setBounded } from "../../core/collections.ts";
import type { Clock } from "../../core/time/clock.ts";
import { log } from "../../log.ts";
import { unroutable } from "../deliver/deliver.ts";
import type { DeliveryRoute, FindDeliveryRoute, Ways } from "../deliver/outcome.ts";
import { type Place, ROUTE_REFRESH_MS } from "./destination.ts";

/** Domains whose lookup is under way, or was lately. If there are more, the oldest is looked up again. */
const MAX_REMEMBERED = 10_000;

/** Finds the routes of domains. The projects that send to a domain share each lookup. */
export class Routes {
  readonly #clock: Clock;
  readonly #ask: FindDeliveryRoute;
  readonly #lookups = new Map<string, { since: number; route: Promise<DeliveryRoute> }>();

  constructor(clock: Clock, find: FindDeliveryRoute) {
    this.#clock = clock;
    this.#ask = find;
  }

  /** Returns the ways of a queue's messages, in order of preference. */
  async ways(place: Place, before: number): Promise<Ways> {
    const found = await this.#find(place.domain, before);
    const [first = found, ...others] = found.ways?.(place) ?? [];
    return [first, ...others];
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
