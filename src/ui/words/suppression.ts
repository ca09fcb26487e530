import type { Suppression } from "../api/types.ts";
import type { Words } from "./status.ts";

/** Each reason of a suppression. */
const REASONS: Readonly<Record<Suppression["reason"], Words & { next: string }>> = {
  bounce: {
    word: "Bounced",
    tone: "bad",
    means: "A message to it bounced, so it gets no more mail.",
    next: "Lift the suppression when the address works again. If it does not, the next message bounces too.",
  },
  complaint: {
    word: "Complained",
    tone: "complaint",
    means: "The recipient marked a message as spam, so the address gets no more mail.",
    next: "Lift the suppression only if the recipient asks you for mail. Complaints harm the delivery of all your mail.",
  },
  manual: {
    word: "By hand",
    tone: "quiet",
    means: "It was added by hand, so it gets no mail.",
    next: "Lift the suppression when the address may get mail again.",
  },
};

/** Returns the words of a reason, and the advice what to do. */
export function suppressionWords(reason: Suppression["reason"]): Words & { next: string } {
  return REASONS[reason];
}
