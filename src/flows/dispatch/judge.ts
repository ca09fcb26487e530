import { type DeliveryReport, type LaneNow, replyLine } from "../deliver/outcome.ts";
import type { Lane } from "../lanes/lane.ts";
import { signOf } from "../lanes/sign.ts";

/** A report with what its lane makes of it. */
export interface Judged {
  report: DeliveryReport;
  /** True if the lane obeys the answer, which then says nothing about whether the peer can be reached. */
  isSign: boolean;
}

/** Lets a lane decide about the answer to a message. @param startedAt when the message began, milliseconds */
export function judge(lane: Lane, report: DeliveryReport, startedAt: number): Judged {
  switch (report.kind) {
    case "accepted":
      return { report: { ...report, lane: laneNow(lane, lane.noteAccepted(startedAt)) }, isSign: false };
    case "refused": {
      lane.count(report.reply.code < 500 ? "deferred" : "refused");
      const sign = signOf(report.reply);
      if (sign === null) return { report: { ...report, lane: laneNow(lane) }, isSign: false };
      const { fate, statements } = lane.note(sign, replyLine(report.reply), startedAt);
      return {
        report: { ...report, lane: { ...laneNow(lane, statements), isDoubtful: fate === "doubtful" } },
        isSign: true,
      };
    }
    case "trouble":
      lane.count("deferred");
      return { report: { ...report, lane: laneNow(lane) }, isSign: false };
    case "undeliverable":
      return { report, isSign: false };
  }
}

/** Returns a lane as a report shows it. */
export function laneNow(lane: Lane, changes: LaneNow["changes"] = []): LaneNow {
  const { name, word: state, opensInMs } = lane;
  const slowedBy = state === "steady" ? null : (lane.state.cause?.category ?? null);
  const cause = lane.warmUpReason === null ? slowedBy : "rate";
  return { name, state, opensInMs, cause, isDoubtful: false, changes };
}
