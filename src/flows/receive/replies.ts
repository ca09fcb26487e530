import { type Reply, reply } from "../../smtp/session/reply.ts";
import { DISK_LOW, MAILBOX_FULL } from "./storage-limits.ts";

export const NO_DOMAIN = reply(550, "5.1.2", "No such domain here. To send, log in at the SUBMISSION_PORT");
export const NO_MAILBOX = reply(550, "5.1.1", "No such mailbox here");
export const REPORT_ACCEPTED = reply(250, "2.0.0", "OK, report taken");
/** The report arrived before our record of the delivery, so its sender tries again. */
export const REPORT_EARLY = reply(
  451,
  "4.3.0",
  "The delivery reported on is not recorded yet, try again later",
);
/** An inbox was deleted after RCPT. At the next try, RCPT refuses that recipient and the others get the message. */
export const RECIPIENT_GONE = reply(451, "4.3.0", "A recipient is no longer here, try again");
export const LOOP = reply(554, "5.4.6", "Too many hops, the message is looping");
export const BUSY = reply(451, "4.3.2", "Too many messages at a time, try again later");
/** A temporary refusal, because the sender may have something to tell us. */
export const ROLE_FULL = reply(452, "4.2.2", "This mailbox has reached its daily limit, try again later");
/** RFC 3463 §3.8: a security check that may succeed later. */
export const DMARC_UNKNOWN = reply(
  451,
  "4.7.0",
  "The author's DMARC policy cannot be checked now, try again later",
);
export const SPAM_UNKNOWN = reply(
  451,
  "4.7.0",
  "The message cannot be checked for spam now, try again later",
);
export const DMARC_REFUSED = reply(550, "5.7.1", "Refused by the DMARC policy of the author's domain");

/** The outcome of a message, as counters name it. */
export type InboundOutcome =
  | ("taken" | "report" | "dmarc" | "rule" | "no_mailbox" | "gone")
  | ("undecided" | "loop" | "busy" | "full" | "early" | "trouble");

const OUTCOMES: ReadonlyMap<Reply, InboundOutcome> = new Map<Reply, InboundOutcome>([
  [REPORT_ACCEPTED, "report"],
  [DMARC_REFUSED, "dmarc"],
  [DMARC_UNKNOWN, "undecided"],
  [SPAM_UNKNOWN, "undecided"],
  [NO_MAILBOX, "no_mailbox"],
  [RECIPIENT_GONE, "gone"],
  [LOOP, "loop"],
  [BUSY, "busy"],
  [ROLE_FULL, "busy"],
  [MAILBOX_FULL, "full"],
  [DISK_LOW, "full"],
  [REPORT_EARLY, "early"],
]);

/** Returns the outcome that a reply stands for. */
export function outcomeOf(answer: Reply): InboundOutcome {
  return OUTCOMES.get(answer) ?? (answer.code < 300 ? "taken" : "rule");
}
