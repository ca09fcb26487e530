import type { Broadcast, BroadcastResults } from "../../api/types.ts";
import { percentText } from "../../words/amounts.ts";
import { duration } from "../../words/time.ts";

type AbTest = NonNullable<Broadcast["abTest"]>;
type TestResults = NonNullable<BroadcastResults["abTest"]>;
type Rate = TestResults["a"]["opened"];

const MINUTE = 60_000;

/** Words of each measure, as in "more people opened". */
const MEASURES = { opens: "opened", clicks: "clicked" } as const;

/** Returns in words how long a test waits before it is decided. */
export function waitText(minutes: number): string {
  return duration(minutes * MINUTE);
}

/** Returns a sentence about what a test will do. */
export function planText({ share, waitMinutes, by }: Pick<AbTest, "share" | "waitMinutes" | "by">): string {
  if (share >= 1) return "Half of the contacts get each subject.";
  return `${percentText(share / 2)} of the contacts get each subject. ${waitText(waitMinutes)} later, the others get the one that more people ${MEASURES[by]}, or the first one if the difference is not clear.`;
}

/** Returns a rate with its margin of error in percentage points: `31 % ± 2.1`; a dash if there is none. */
export function rateText({ rate, margin }: Pick<Rate, "rate" | "margin">): string {
  if (rate === null || margin === null) return "–";
  return `${percentText(rate)} ± ${(margin * 100).toFixed(margin < 0.1 ? 1 : 0)}`;
}

/** Returns what a test says: which subject has won, which is better so far, or that neither is. */
export function verdictText({ decision }: AbTest, { better }: Pick<TestResults, "better">): string {
  if (decision === null)
    return better === null ? "No clear difference so far" : `${better.toUpperCase()} is better so far`;
  return decision.winner === "undecided"
    ? "No clear difference, so the others get A"
    : `${decision.winner.toUpperCase()} has won, so the others get it`;
}
