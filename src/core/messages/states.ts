/** States of one recipient of an outbound message. */
export const RECIPIENT_STATUSES = [
  "accepted",
  "queued",
  "sending",
  "sent",
  "delivery_delayed",
  "delivered",
  "bounced",
  "complained",
  "rejected",
  "rendering_failure",
  "failed",
] as const;
export type RecipientStatus = (typeof RECIPIENT_STATUSES)[number];

/** Statuses of a message: the roll-up of its recipients, or `inbound_rejected`. A received message is `delivered`. */
export const MESSAGE_STATUSES = [...RECIPIENT_STATUSES, "inbound_rejected"] as const;
export type MessageStatus = (typeof MESSAGE_STATUSES)[number];

/**
 * Order of the roll-up: a message has the first of these states that one of its recipients has. States that still
 * change come first, then the final ones, worst first.
 */
export const ROLL_UP_ORDER: readonly RecipientStatus[] = [
  "sending",
  "delivery_delayed",
  "queued",
  "accepted",
  "complained",
  "bounced",
  "rendering_failure",
  "failed",
  "rejected",
  "sent",
  "delivered",
];

/** States in which a worker still has work to do. */
export const MOVING: ReadonlySet<RecipientStatus> = new Set([
  "sending",
  "delivery_delayed",
  "queued",
  "accepted",
]);

/**
 * States that may follow each state. A later report (a DSN, a complaint) moves a recipient on from `sent` or
 * `delivered`. A final failure stays, unless the recipient complains: then a copy arrived (forwarded, or its 250 was
 * lost), and we must not send more.
 */
export const TRANSITIONS: Readonly<Record<RecipientStatus, readonly RecipientStatus[]>> = {
  accepted: ["queued", "sending", "failed"],
  queued: ["sending", "rejected", "failed"],
  sending: [
    "sent",
    "delivered",
    "delivery_delayed",
    "bounced",
    "rejected",
    "rendering_failure",
    "failed",
    "queued",
    "complained",
  ],
  delivery_delayed: ["sending", "failed", "bounced", "rejected", "complained"],
  sent: ["delivered", "bounced", "failed", "complained"],
  delivered: ["bounced", "failed", "complained"],
  bounced: ["complained"],
  complained: [],
  rejected: [],
  rendering_failure: [],
  failed: ["complained"],
};

/** Returns whether a recipient may move from state `from` to state `to`. */
export function canMove(from: RecipientStatus, to: RecipientStatus): boolean {
  return TRANSITIONS[from].includes(to);
}

/** Returns the status of a message from those of its recipients. */
export function rollUp(statuses: Iterable<RecipientStatus>): RecipientStatus {
  const present = new Set(statuses);
  for (const status of ROLL_UP_ORDER) if (present.has(status)) return status;
  throw new Error("a message has at least one recipient");
}
