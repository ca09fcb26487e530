import { MOVING, type RecipientStatus } from "../../core/messages/states.ts";
import type { Config } from "../../config.ts";
import { log } from "../../log.ts";
import { firstReturned, type Guard, type Statement, type Written } from "../../store/engine/client.ts";
import type { Recipient } from "../../store/messages/recipients.ts";
import { countForProvider, type ProviderFigure } from "../../store/projects/provider-stats.ts";
import { providerLane } from "../lanes/providers.ts";
import { DAY_MS } from "../../core/time/units.ts";
import {
  addComplainant,
  addReputation,
  judgeSender,
  type ReputationCounts,
  type ReputationLimits,
} from "../../store/projects/reputation.ts";

/** Smallest number of recipients in seven days for which a rate is computed. */
const MIN_SETTLED = 200;

/**
 * Returns the limits that suspend a sender. Complaints of fewer than `minComplainants` recipients suspend none.
 * @param bouncePercent hard bounces that suspend, percent of the recipients settled; 0: no share does
 * @param complaintPercent complaints that suspend, in the same way
 */
export function limitsOf(
  minComplainants: number,
  bouncePercent = 8,
  complaintPercent = 0.3,
): ReputationLimits {
  return {
    minSettled: MIN_SETTLED,
    bouncedPerMille: bouncePercent * 10,
    complainedPerMille: complaintPercent * 10,
    minComplainants,
  };
}

/** Returns the limits that the settings give. */
export function suspensionLimits(
  config: Pick<Config, "suspendMinComplaints" | "suspendBouncePercent" | "suspendComplaintPercent">,
): ReputationLimits {
  const { suspendMinComplaints, suspendBouncePercent, suspendComplaintPercent } = config;
  return limitsOf(suspendMinComplaints, suspendBouncePercent, suspendComplaintPercent);
}

/** The counts of each outcome. A message that never left counts nothing, so it cannot lower the rates. */
const COUNTS: Readonly<Partial<Record<RecipientStatus, Omit<ReputationCounts, "settled">>>> = {
  sent: { bounced: 0, complained: 0 },
  delivered: { bounced: 0, complained: 0 },
  failed: { bounced: 0, complained: 0 },
  bounced: { bounced: 1, complained: 0 },
  complained: { bounced: 0, complained: 1 },
};

/** The change of a recipient's state, under the guard of its write. */
export interface Outcome {
  recipient: Pick<Recipient, "senderId" | "status">;
  status: RecipientStatus;
  /** MX host that the message went to. Null if none is known. */
  mx: string | null;
  /** True if it says nothing about the sender: a simulated outcome, or a fault on our side. */
  uncounted: boolean;
  /** True if a bounce is no reason to suspend: a soft one, or one while its lane is slowed or blocked. */
  excused?: boolean;
  /**
   * `addressKey` of the recipient whose complaint is authenticated. Other complaints suspend no sender, because each
   * recipient has the token of a report and could write any number of them.
   */
  complainant?: string | null;
  guard: Guard;
}

/** The figure of a provider that an outcome raises. */
const PROVIDER_FIGURE: Readonly<Partial<Record<RecipientStatus, ProviderFigure>>> = {
  delivered: "delivered",
  delivery_delayed: "delayed",
  bounced: "bounced",
  complained: "complained",
};

/** Counts an outcome for the provider that the message went to, if it is a known one. */
function countProvider({ recipient, status, mx, uncounted, guard }: Outcome, now: number): Statement[] {
  const figure = PROVIDER_FIGURE[status];
  if (mx === null || uncounted || figure === undefined) return [];
  const provider = providerLane([mx])?.provider.name;
  if (provider === undefined) return [];
  const day = Math.floor(now / DAY_MS);
  return [countForProvider({ senderId: recipient.senderId, provider, day }, figure, guard)];
}

/**
 * Counts an outcome for its provider, and for the sender's reputation. If its rates of the last seven days are too high, suspends the sender.
 * Put the statements first in the outcome's own write, because the guard holds only until then. If a later report
 * concerns a recipient, it does not count as another one. A suspended sender keeps the time of its suspension. Lifting
 * the suspension resets the counts (`updateSender`), so it takes another 200 recipients to suspend it again.
 */
export function countOutcome(outcome: Outcome, limits: ReputationLimits, now: number): Statement[] {
  const { recipient, status, uncounted, excused = false, complainant = null, guard } = outcome;
  const { senderId } = recipient;
  const counts = COUNTS[status];
  const byProvider = countProvider(outcome, now);
  if (counts === undefined || uncounted) return byProvider;
  const settled = MOVING.has(recipient.status) ? 1 : 0;
  return [
    ...byProvider,
    addReputation(senderId, now, { settled, ...counts, excused: excused ? counts.bounced : 0 }, guard),
    ...(complainant === null ? [] : addComplainant(senderId, complainant, now, guard)),
    judgeSender(senderId, limits, now, counts.bounced + counts.complained === 0),
  ];
}

/**
 * Logs a write that has suspended the sender, or shows it near suspension.
 * @param counted the statements of `countOutcome`, which were first in the write
 */
export function logSuspension(
  senderId: string,
  counted: readonly Statement[],
  written: readonly Written[],
): void {
  const judged = counted.length === 0 ? undefined : written[counted.length - 1];
  const row = firstReturned<{ suspended_at: number | null; trust_tier: string }>(judged);
  if (row === null) return;
  const state = row.suspended_at === null ? "near suspension" : "suspended";
  log("send").warn(`sender ${state} for its bounces or complaints`, { senderId, tier: row.trust_tier });
}
