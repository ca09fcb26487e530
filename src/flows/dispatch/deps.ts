import type { Clock } from "../../core/time/clock.ts";
import type { Job } from "../../queue/port.ts";
import type { FindWays } from "../deliver/ways.ts";
import type { JobAdmission } from "../deliver/admission.ts";
import type { FindDeliveryRoute, Later } from "../deliver/outcome.ts";
import type { DestinationLimits } from "./destination.ts";
import type { Handover } from "./handover.ts";
import type { InFlightLimits } from "./in-flight-limits.ts";
import type { Pace } from "./pacer.ts";

export interface DispatchLimits extends DestinationLimits, InFlightLimits {
  /** Recipients that wait here. If there are more, the sweep brings them later from the database. */
  waiting: number;
}

export interface DispatchDeps {
  clock: Clock;
  findDeliveryRoute: FindDeliveryRoute;
  /** Finds the ways that a project's routes give. If left out, there are no such routes. */
  waysOf?: FindWays | null;
  /** Moments for messages to MX hosts. Null if there is no limit. */
  pace: Pace | null;
  /** Time for which a destination rests after it could not be reached, milliseconds. */
  restMs: number;
  /** Admits large messages. If left out, only the limits in flight bound them. */
  largeMessageAdmission?: Pick<JobAdmission, "lacking">;
  /** Runs a job. Returns when it should come again, or null if it is over. */
  transmit: (job: Job, handover: Handover) => Promise<Later | null>;
}
