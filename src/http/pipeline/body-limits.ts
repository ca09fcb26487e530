import type { Clock } from "../../core/time/clock.ts";
import type { BodyReading } from "../body/body.ts";
import { LARGE_BODY_OCTETS } from "../body/budget.ts";
import type { RunSteps } from "../json/steps.ts";
import type { Route } from "../routing/route.ts";

/** Dependencies of reading bodies. */
interface BodyDeps {
  clock: Clock;
  maxBodyBytes: number;
  runSteps: RunSteps;
}

/** Returns how the body of a route is read. */
export function bodyReading(deps: BodyDeps, route: Route): Omit<BodyReading, "reservation"> {
  return { clock: deps.clock, maxBytes: maxBytesOf(deps, route), runSteps: deps.runSteps };
}

/** Largest body, bytes, if the route sets no other limit. */
export const DEFAULT_MAX_BODY_BYTES = 1024 * 1024;

/** Returns the largest body in bytes. If a route has no body, it may wait for hosts, so its bodies take no turn. */
function maxBytesOf({ maxBodyBytes }: BodyDeps, { body, bodyLimit, uploads }: Route): number {
  if (bodyLimit === "message") return maxBodyBytes;
  if (uploads !== undefined) return bodyLimit ?? DEFAULT_MAX_BODY_BYTES;
  const limit = body === undefined ? LARGE_BODY_OCTETS - 1 : (bodyLimit ?? DEFAULT_MAX_BODY_BYTES);
  return Math.min(maxBodyBytes, limit);
}
