import type { Clock } from "../core/clock.ts";
import type { Asked, Found, Inspect, ReadingKind } from "../flows/readings.ts";

/** What came of a reading. `busy`: turned away for now. */
export type InspectOutcome = "read" | "busy" | "failed";

export type InspectMeter = (seconds: number, kind: ReadingKind, outcome: InspectOutcome) => void;

/** Inspects as `inspect` does, and tells how long each took, from being asked to its answer. */
export function timedInspect(clock: Clock, inspect: Inspect, meter: InspectMeter): Inspect {
  return async <Kind extends ReadingKind>(asked: Asked<Kind>): Promise<Found<Kind> | null> => {
    const startedAt = clock.now();
    let outcome: InspectOutcome = "failed";
    try {
      const found = await inspect(asked);
      outcome = found === null ? "busy" : "read";
      return found;
    } finally {
      meter((clock.now() - startedAt) / 1000, asked.kind, outcome);
    }
  };
}
