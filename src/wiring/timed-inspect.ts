import type { Clock } from "../core/clock.ts";
import type { Asked, Found, Inspect, ReadingKind } from "../flows/readings.ts";
import { timed } from "./timed.ts";

/** What came of a reading. `busy`: turned away for now. */
export type InspectOutcome = "read" | "busy" | "failed";

export type InspectMeter = (seconds: number, kind: ReadingKind, outcome: InspectOutcome) => void;

/** Inspects as `inspect` does, and tells how long each took, from being asked to its answer. */
export function timedInspect(clock: Clock, inspect: Inspect, meter: InspectMeter): Inspect {
  return <Kind extends ReadingKind>(asked: Asked<Kind>): Promise<Found<Kind> | null> =>
    timed(
      clock,
      () => inspect(asked),
      (found): InspectOutcome => (found === null ? "busy" : "read"),
      (seconds, outcome) => meter(seconds, asked.kind, outcome),
    );
}
