/** States of one recipient of an outbound message. */
const RECIPIENT_STATUSES = [
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

/** A message's status: its recipients' rolled up, or `inbound_rejected`; a mail received is `delivered`. */
export const MESSAGE_STATUSES = [...RECIPIENT_STATUSES, "inbound_rejected"] as const;
export type MessageStatus = (typeof MESSAGE_STATUSES)[number];

/**
 * The roll-up order: a message shows the first of these that any of its recipients is in.
 * States that still move come first, then the final ones, worst first.
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

/** States in which a worker still has something to do. */
export const MOVING: ReadonlySet<RecipientStatus> = new Set([
  "sending",
  "delivery_delayed",
  "queued",
  "accepted",
]);

/**
 * Which state may follow which. A report that arrives later (a DSN, a complaint) moves a recipient on from
 * `sent` or `delivered`; a final failure stays, but for a complaint: whoever complains has got the mail (a copy that
 * was forwarded, or one whose 250 was lost), and must not be sent more.
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

/** Whether a recipient in `from` may move to `to`. */
export function canMove(from: RecipientStatus, to: RecipientStatus): boolean {
  return TRANSITIONS[from].includes(to);
}

/** The message's status over its recipients'. */
export function rollUp(statuses: Iterable<RecipientStatus>): RecipientStatus {
  const present = new Set(statuses);
  for (const status of ROLL_UP_ORDER) if (present.has(status)) return status;
  throw new Error("a message has at least one recipient");
}
