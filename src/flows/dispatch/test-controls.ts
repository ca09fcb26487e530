import { type AdjustableClock, adjustableClock } from "../../core/time/adjustable-clock.ts";
import type { Clock } from "../../core/time/clock.ts";
import { type DeliveryReport, noFacts, type Shipment } from "../deliver/outcome.ts";

/** The parts that tests steer by the routes under `/test/`. */
export interface TestControls {
  clock: AdjustableClock;
  failures: MadeFailures;
}

/** Stages of a conversation at which a test can have a delivery fail. */
export const FAILING_STAGES = ["connect", "mail", "rcpt", "data"] as const;

/** The failure that a test asks for. */
export interface MadeFailure {
  /** Returns true for the recipients that it concerns. */
  concerns: (address: string) => boolean;
  stage: (typeof FAILING_STAGES)[number];
  code: number;
  enhanced: string | null;
  text: string;
  /** Number of attempts that fail. */
  times: number;
}

/** The failures that attempts have not met yet. */
export interface MadeFailures {
  add(failure: MadeFailure): void;
  clear(): void;
  /** Returns the report of an attempt that fails, and counts it; null if it succeeds. */
  meet(shipment: Pick<Shipment, "rcptTo">): DeliveryReport | null;
}

/** Maximum number of failures that wait. The oldest is forgotten. */
const MAX_FAILURES = 1000;

/** Returns the controls of `TEST_CONTROLS=1`. Their clock runs like `base` until a test sets it forward. */
export function testControls(base: Clock): TestControls {
  const clock = adjustableClock(base);
  return { clock, failures: madeFailures(clock) };
}

function madeFailures(clock: Clock): MadeFailures {
  const waiting: MadeFailure[] = [];
  return {
    add(failure) {
      waiting.push({ ...failure });
      if (waiting.length > MAX_FAILURES) waiting.shift();
    },
    clear: () => void waiting.splice(0),
    meet({ rcptTo }) {
      const at = waiting.findIndex(({ concerns }) => concerns(rcptTo));
      const failure = waiting[at];
      if (failure === undefined) return null;
      failure.times--;
      if (failure.times === 0) waiting.splice(at, 1);
      const { stage, code, enhanced, text } = failure;
      return {
        ...noFacts(clock.now()),
        mx: "capture",
        kind: "refused",
        reply: { stage, code, enhanced, text },
      };
    },
  };
}
