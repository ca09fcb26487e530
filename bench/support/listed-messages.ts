import type { MessageStatus } from "../../src/core/messages/states.ts";
import { type Message, NOT_SENT } from "../../src/store/messages/messages.ts";

/** The project that is measured, and two others. */
export const PROJECTS = [
  "snd_01000000000000000000measa",
  "snd_01000000000000000000otherb",
  "snd_01000000000000000000otherc",
] as const;

/** Values that only three messages of the measured project have: the oldest, the middle one and the newest. */
export const RARE = {
  from: "founder@shop.example",
  tag: { name: "campaign", value: "launch" },
  word: "quixotic",
} as const;

/** A word that every subject of the other projects has, and no subject of the measured one. */
export const THEIRS = "neighbour";

const SUBJECTS = [
  "Your invoice for order",
  "Your parcel is on its way:",
  "Reset your password, request",
  "Welcome! Confirm your address, code",
  "Receipt for your payment",
  "Weekly digest no.",
  "Someone commented on thread",
  "Your booking is confirmed:",
  "Reminder: your appointment",
  "Security alert for session",
  "Your subscription renews, contract",
  "We miss you! Voucher",
];

/** Returns the `at`-th of `count` messages, as a shop might send them. */
export function listedMessage(
  senderId: string,
  id: string,
  createdAt: number,
  at: number,
  count: number,
): Message {
  const measured = senderId === PROJECTS[0];
  const rare = measured && (at === 0 || at === count / 2 || at === count - 1);
  const subject = `${SUBJECTS[at % SUBJECTS.length]} ${(at * 7919) % 1_000_003}`;
  const to = at % 10 === 7 ? "everyone@list.example" : `user${at}@d${at % 50}.example`;
  return {
    id,
    senderId,
    direction: "outbound",
    status: statusOf(at, rare),
    from: { email: rare ? RARE.from : `sender${at % 10}@shop.example`, name: "The Shop" },
    to: [{ email: to }],
    cc: [],
    bcc: [],
    replyTo: [],
    subject: rare ? `${subject} ${RARE.word}` : measured ? subject : `${subject} ${THEIRS}`,
    tags: [rare ? RARE.tag : { name: "campaign", value: at % 2 === 0 ? "spring" : "autumn" }],
    rfcMessageId: `<${id}@shop.example>`,
    inReplyTo: null,
    threadId: null,
    inboxId: null,
    ...NOT_SENT,
    trust: null,
    sentAt: createdAt,
    size: 5000,
    testMode: false,
    trackOpens: true,
    trackClicks: true,
    createdAt,
  };
}

function statusOf(at: number, rare: boolean): MessageStatus {
  if (rare) return "complained";
  return at % 10 === 4 ? "bounced" : "delivered";
}
