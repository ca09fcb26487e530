import type { BroadcastResults, BroadcastSummary } from "../../api/types.ts";
import { countText, counted, percentText } from "../../words/amounts.ts";
import type { Filter } from "../../words/filter.ts";
import type { Tone } from "../../words/status.ts";
import { duration } from "../../words/time.ts";

type Status = BroadcastSummary["status"];

/** How each status is shown. */
export const BROADCAST_STATUS: Readonly<Record<Status, { tone: Tone; word: string }>> = {
  draft: { tone: "quiet", word: "Draft" },
  scheduled: { tone: "moving", word: "Scheduled" },
  sending: { tone: "moving", word: "Sending" },
  paused: { tone: "late", word: "Paused" },
  sent: { tone: "good", word: "Sent" },
  canceled: { tone: "quiet", word: "Canceled" },
};

/** Returns whether the broadcast continues by itself. */
export function isMoving({ status }: BroadcastSummary): boolean {
  return status === "scheduled" || status === "sending";
}

/** Returns the filter of the contacts who would get a broadcast now. @param segment null: all contacts */
export function readersFilter(topicId: string, segment: { filter: Filter } | null): Filter {
  return {
    all: [
      { field: "subscribed", op: "eq", value: true },
      { topic: topicId, op: "eq", value: "subscribed" },
      ...(segment === null ? [] : [segment.filter]),
    ],
  };
}

/** Returns how far a broadcast has come: `1,200 of 4,000 contacts`. Those left out count. */
export function progressText({ counts: { audience, recipients, skipped } }: BroadcastSummary): string {
  const done = recipients + skipped;
  return audience === null
    ? counted(done, "contact")
    : `${countText(done)} of ${counted(audience, "contact")}`;
}

/** Returns a sentence about what a broadcast does or did. */
export function stateText(broadcast: BroadcastSummary): string {
  const { status, counts, startedAt, endedAt, abTest } = broadcast;
  switch (status) {
    case "draft":
      return "It was not sent yet.";
    case "scheduled":
      return "It begins at its time.";
    case "sending":
      return abTest !== null && abTest.decideAt !== null && abTest.decision === null
        ? `${progressText(broadcast)} got the test. The others wait for its result.`
        : `${progressText(broadcast)} so far.`;
    case "paused":
      return `It waits after ${progressText(broadcast)}.`;
    case "canceled":
      return `It ended after ${progressText(broadcast)}.`;
    case "sent": {
      const ms = Date.parse(endedAt ?? "") - Date.parse(startedAt ?? "");
      return `${counted(counts.recipients, "message")}${Number.isNaN(ms) ? "" : ` in ${duration(ms)}`}.`;
    }
  }
}

/** A result of a broadcast: how many, and their share of those that could have. */
export interface Result {
  name: string;
  count: number;
  /** `41 %`; empty if there is nothing to share in. */
  share: string;
}

/** Returns the results: what became of its messages, and what readers of delivered ones did. */
export function resultsOf({ counts }: BroadcastSummary): readonly Result[] {
  const { recipients, skipped, sent, bounced, complained, failed, opened, clicked, unsubscribed } = counts;
  const arrived = Math.max(counts.delivered, sent);
  const result = (name: string, count: number, of: number): Result => ({
    name,
    count,
    share: of === 0 ? "" : percentText(count / of),
  });
  return [
    { name: "Messages", count: recipients, share: skipped === 0 ? "" : `${countText(skipped)} left out` },
    result("Delivered", arrived, recipients),
    result("Opened", opened, arrived),
    result("Clicked", clicked, arrived),
    result("Unsubscribed", unsubscribed, arrived),
    result("Bounced", bounced, recipients),
    result("Complained", complained, arrived),
    result("Failed", failed, recipients),
  ];
}

/** Returns the results in one line for a list: `41 % opened, 3 % clicked`. */
export function shortResults(broadcast: BroadcastSummary): string {
  return resultsOf(broadcast)
    .filter(
      ({ name, share }) => share !== "" && (name === "Delivered" || name === "Opened" || name === "Clicked"),
    )
    .map(({ name, share }) => `${share} ${name.toLowerCase()}`)
    .join(", ");
}

type Point = BroadcastResults["data"][number];
/** The figures of an interval that begins at `at`, milliseconds. */
type Figures = Omit<Point, "at"> & { at: number };

/** Maximum number of intervals that a chart shows. */
const MAX_POINTS = 1000;

/** Returns figures with those of the intervals between them in which nothing happened. `ms`: length of an interval. */
export function withoutGaps(data: readonly Point[], ms: number): readonly Figures[] {
  const points: Figures[] = [];
  for (const { at, ...figures } of data) {
    const start = Date.parse(at);
    const none = Object.fromEntries(Object.keys(figures).map((name) => [name, 0])) as Omit<Point, "at">;
    let next = (points.at(-1)?.at ?? start) + ms;
    for (; next < start && points.length < MAX_POINTS; next += ms) points.push({ ...none, at: next });
    if (points.length < MAX_POINTS) points.push({ ...figures, at: start });
  }
  return points;
}
