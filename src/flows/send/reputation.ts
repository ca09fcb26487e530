import { MOVING, type RecipientStatus } from "../../core/states.ts";
import { DAY_MS } from "../../core/time-units.ts";
import { log } from "../../log.ts";
import type { Guard, Statement, Written } from "../../store/engine/client.ts";
import type { Recipient } from "../../store/recipients.ts";
import {
  addReputation,
  type ReputationCounts,
  type ReputationLimits,
  suspendOverLimits,
} from "../../store/reputation.ts";
import { utcDay } from "../../store/usage.ts";

/** UTC days over which outcomes are counted, the running one among them. */
const WINDOW_DAYS = 7;

/** 8 % bounced or 0.3 % complained of at least 200 recipients. */
const LIMITS: ReputationLimits = { minSettled: 200, bouncedPerMille: 80, complainedPerMille: 3 };

/** What each outcome says of the sender. What never left us says nothing, and so cannot thin the rates out. */
const COUNTS: Readonly<Partial<Record<RecipientStatus, Omit<ReputationCounts, "settled">>>> = {
  sent: { bounced: 0, complained: 0 },
  delivered: { bounced: 0, complained: 0 },
  failed: { bounced: 0, complained: 0 },
  bounced: { bounced: 1, complained: 0 },
  complained: { bounced: 0, complained: 1 },
};

/** An outcome: where the recipient stood, and where it goes, under the guard of the write that moves it. */
export interface Outcome {
  recipient: Pick<Recipient, "senderId" | "status">;
  status: RecipientStatus;
  /** Whether it says nothing of the sender: a simulated outcome, or trouble of our own. */
  uncounted: boolean;
  guard: Guard;
}

/**
 * Counts an outcome for the sender's reputation, and suspends the sender where its rates of the last seven days have
 * grown too high. To be put first in the outcome's own write, where the guard still holds. A recipient that a later
 * report concerns does not count as another one.
 *
 * A suspended sender keeps the time of its suspension. Lifting it forgets the counts (`updateSender`), so that the
 * old figures cannot suspend it again: another 200 recipients are needed.
 */
export function countOutcome(outcome: Outcome, now: number): Statement[] {
  const { recipient, status, uncounted, guard } = outcome;
  const { senderId } = recipient;
  const counts = COUNTS[status];
  if (counts === undefined || uncounted) return [];
  const settled = MOVING.has(recipient.status) ? 1 : 0;
  return [
    addReputation(senderId, now, { settled, ...counts }, guard),
    suspendOverLimits(senderId, utcDay(now - (WINDOW_DAYS - 1) * DAY_MS), LIMITS, now),
  ];
}

/**
 * Says in the log where a write that begins with `counted` has suspended the sender: nobody else tells the operator.
 * @param counted what `countOutcome` gave
 */
export function tellSuspension(
  senderId: string,
  counted: readonly Statement[],
  written: readonly Written[],
): void {
  if (counted.length > 0 && written[counted.length - 1]?.changes === 1)
    log("send").warn("sender suspended for its bounces or complaints", { senderId });
}
