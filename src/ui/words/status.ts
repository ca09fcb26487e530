import type { MessageStatus } from "../api/types.ts";

/** The colour of a status, which always stands next to its word. */
export type Tone = "good" | "moving" | "late" | "bad" | "complaint" | "quiet";

/** How a state is shown. */
export interface Words {
  word: string;
  tone: Tone;
  /** One sentence that says what the status means. */
  means: string;
}

const STATUSES: Readonly<Record<MessageStatus, Words>> = {
  accepted: { word: "Scheduled", tone: "moving", means: "It waits for its time." },
  queued: { word: "Queued", tone: "moving", means: "It waits for its turn to be sent." },
  sending: { word: "Sending", tone: "moving", means: "It is being handed to the recipient's mail server." },
  sent: { word: "Sent", tone: "good", means: "The smarthost took it. The smarthost delivers it from there." },
  delivery_delayed: {
    word: "Delayed",
    tone: "late",
    means: "The last try did not succeed. It is tried again by itself.",
  },
  delivered: { word: "Delivered", tone: "good", means: "The recipient's mail server took the message." },
  bounced: { word: "Bounced", tone: "bad", means: "It could not be delivered, and will not be tried again." },
  complained: {
    word: "Complained",
    tone: "complaint",
    means: "The recipient marked it as spam. The address gets no more mail.",
  },
  rejected: { word: "Rejected", tone: "bad", means: "It was not sent, because the address is blocked here." },
  rendering_failure: { word: "Not rendered", tone: "bad", means: "Its template could not be filled in." },
  failed: { word: "Failed", tone: "bad", means: "It was not delivered, and will not be tried again." },
  inbound_rejected: {
    word: "Refused",
    tone: "bad",
    means: "The sender's domain asks to refuse mail that it did not sign.",
  },
};

/** A message that waits until another key approves it. */
export const AWAITING: Words = {
  word: "Awaiting approval",
  tone: "late",
  means: "It waits until another key approves it.",
};

/** Mail that capture mode has delivered. On the wire its status is `delivered`. */
const CAPTURED: Words = {
  word: "Captured",
  tone: "good",
  means: "Capture mode kept it on this machine. No mail server got it.",
};

const EVENTS: Readonly<Record<string, Words>> = {
  delivery: STATUSES.delivered,
  bounce: STATUSES.bounced,
  complaint: STATUSES.complained,
  open: { word: "Opened", tone: "good", means: "The recipient's mail program loaded the tracking picture." },
  click: { word: "Clicked", tone: "good", means: "The recipient followed a link." },
  unsubscribed: { word: "Unsubscribed", tone: "quiet", means: "The recipient unsubscribed from such mail." },
  inbound_received: { word: "Received", tone: "good", means: "The message arrived at an inbox." },
  accepted: { word: "Accepted", tone: "moving", means: "The API took the message." },
};

const UNKNOWN: Words = { word: "Unknown", tone: "quiet", means: "" };

/**
 * Returns the words of a status. A status that is newer than this page is shown as it is.
 * @param captured true if it is delivered only to this machine
 */
export function statusWords(
  status: string,
  direction: "inbound" | "outbound" = "outbound",
  captured = false,
): Words {
  if (captured && direction === "outbound" && status === "delivered") return CAPTURED;
  if (direction === "inbound" && status === "delivered") return EVENTS.inbound_received ?? UNKNOWN;
  return STATUSES[status as MessageStatus] ?? { ...UNKNOWN, word: status };
}

/** Returns the words of an event type. @param captured true if it is the delivery of a captured message */
export function eventWords(type: string, captured = false): Words {
  return captured ? CAPTURED : (EVENTS[type] ?? statusWords(type));
}

/** Statuses in which a message can still change by itself. */
export const MOVING: ReadonlySet<string> = new Set(["accepted", "queued", "sending", "delivery_delayed"]);
