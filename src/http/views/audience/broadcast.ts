import { type Static, Type } from "@sinclair/typebox";
import { BROADCAST_STATUSES } from "../../../core/audience/broadcasts.ts";
import type { WholeBroadcast } from "../../../flows/broadcasts/save.ts";
import type { Broadcast } from "../../../store/audience/broadcasts.ts";
import { type BroadcastFigures, NO_FIGURES } from "../../../store/audience/broadcast-figures.ts";
import { MAX_NAME_CHARS, NOT_BLANK, Nullable, OneOf, showTime, Timestamp } from "../../routing/schemas.ts";
import { Address } from "../received.ts";
import { AbTestView, showTest } from "./ab-test.ts";
import { ShownRouteIds } from "../route-ids.ts";

const Count = (description: string) => Type.Integer({ description });

/** The numbers of a broadcast. */
const Counts = Type.Object(
  {
    audience: Nullable(Count("Contacts that passed the segment's filter at the start. Null before it.")),
    recipients: Count("Contacts for whom a message was made."),
    skipped: Count(
      "Contacts left out: suppressed, unsubscribed, without the topic, or with a value that makes the subject too long.",
    ),
    sent: Count("Messages that a relay took, if it does not report deliveries."),
    delivered: Type.Integer(),
    bounced: Type.Integer(),
    complained: Type.Integer(),
    failed: Count("Messages that were not sent, also because the person left after they were made."),
    opened: Count("Recipients who opened it, without machines."),
    clicked: Count("Recipients who clicked, without machines."),
    unsubscribed: Count("Recipients who left by its link."),
  },
  { title: "BroadcastCounts" },
);

const SUMMARY = {
  id: Type.String(),
  name: Type.String({ minLength: 1, maxLength: MAX_NAME_CHARS, ...NOT_BLANK, examples: ["May letter"] }),
  status: OneOf(
    BROADCAST_STATUSES,
    "`sending` until each of its messages was tried once. While it is `paused`, its messages wait.",
  ),
  topicId: Type.String(),
  segmentId: Nullable(Type.String({ description: "Null: all contacts." })),
  from: Address,
  replyTo: Type.Array(Address),
  subject: Nullable(Type.String({ description: "Null: that of the template." })),
  templateId: Nullable(Type.String()),
  scheduledAt: Nullable(Timestamp),
  ratePerHour: Nullable(Type.Integer()),
  routeIds: ShownRouteIds("those of the From domain or the project"),
  abTest: Nullable(AbTestView),
  counts: Counts,
  problem: Nullable(
    Type.Object(
      { code: Type.String({ examples: ["daily_quota_exceeded"] }), message: Type.String() },
      {
        title: "BroadcastProblem",
        description:
          "Why it waits, such as for the next day's quota, or why it was paused. Resume it once that is solved.",
      },
    ),
  ),
  startedAt: Nullable(Timestamp),
  endedAt: Nullable(Timestamp),
  createdAt: Timestamp,
  updatedAt: Timestamp,
};

/** A broadcast as lists show it. */
export const BroadcastSummaryView = Type.Object(SUMMARY, { title: "BroadcastSummary" });

/** A broadcast with its content. */
export const BroadcastView = Type.Object(
  {
    ...SUMMARY,
    html: Nullable(Type.String()),
    text: Nullable(Type.String()),
  },
  { title: "Broadcast" },
);

/** Returns a broadcast in the form of `BroadcastSummaryView`. */
export function showBroadcastSummary(
  broadcast: Broadcast,
  figures: BroadcastFigures = NO_FIGURES,
): Static<typeof BroadcastSummaryView> {
  const { id, name, status, topicId, segmentId, from, replyTo, subject, templateId, problem } = broadcast;
  const { audience, recipients, skipped, ratePerHour, routeIds, abTest } = broadcast;
  return {
    id,
    name,
    status,
    topicId,
    segmentId,
    from,
    replyTo,
    subject,
    templateId,
    scheduledAt: showTime(broadcast.scheduledAt),
    ratePerHour,
    routeIds,
    abTest: abTest && showTest(abTest),
    counts: { audience, recipients, skipped, ...figures },
    problem,
    startedAt: showTime(broadcast.startedAt),
    endedAt: showTime(broadcast.endedAt),
    createdAt: showTime(broadcast.createdAt),
    updatedAt: showTime(broadcast.updatedAt),
  };
}

/** Returns a broadcast in the form of `BroadcastView`. */
export function showBroadcast(
  { broadcast, body }: WholeBroadcast,
  figures?: BroadcastFigures,
): Static<typeof BroadcastView> {
  return { ...showBroadcastSummary(broadcast, figures), html: body.html, text: body.text };
}
