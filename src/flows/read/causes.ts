import type { RecipientStatus } from "../../core/messages/states.ts";
import type { ReplyCategory } from "../../mail/bounces/reply-phrases.ts";
import type { ResponsibleParty } from "../../mail/bounces/reply-reading.ts";
import { APPROVAL_EXPIRED, AWAITING_APPROVAL, KEY_REVOKED } from "../../store/messages/approvals.ts";
import { HELD_FOR } from "../../store/messages/held-recipients.ts";

/** The party that can change the outcome. */
export const PARTIES = ["you", "recipient", "provider", "us", "nobody"] as const;
export type Party = (typeof PARTIES)[number];

/** Why something happened, who can change it, and how. */
export interface Cause {
  why: string;
  who: Party;
  next: string;
}

const NOTHING_TO_DO = "Nothing.";

export const WHAT: Readonly<Record<RecipientStatus, string>> = {
  accepted: "The message was accepted and waits to be sent.",
  queued: "The message waits to be sent.",
  sending: "The message is being sent now.",
  sent: "The smarthost has taken the message. It reports later if the delivery fails.",
  delivery_delayed: "The delivery did not work yet. It is tried again.",
  delivered: "The recipient's mail server has taken the message.",
  bounced: "The message came back.",
  complained: "The recipient marked the message as spam.",
  rejected: "The message was not sent.",
  rendering_failure: "The message could not be made from its template.",
  failed: "The message was not delivered.",
};

/** Causes of statuses that need no reason. */
export const BY_STATUS: Partial<Readonly<Record<RecipientStatus, Cause>>> = {
  accepted: { why: "No worker has taken it up yet.", who: "us", next: "Wait a moment." },
  queued: { why: "No worker has taken it up yet.", who: "us", next: "Wait a moment." },
  sending: { why: "The conversation with the mail server has not ended.", who: "us", next: "Wait a moment." },
  sent: { why: "Mail goes through a smarthost.", who: "nobody", next: NOTHING_TO_DO },
  delivered: {
    why: "The server has accepted it. Whether it is in the inbox or among spam is the provider's choice.",
    who: "nobody",
    next: NOTHING_TO_DO,
  },
  complained: {
    why: "The provider has reported it. The address is suppressed now.",
    who: "recipient",
    next: "Send to this person again only if they ask for it, and lift the suppression then.",
  },
  rendering_failure: {
    why: "The template or its data has an error, which the diagnostic quotes.",
    who: "you",
    next: "Try the template with POST /v1/templates/preview, correct it, and send again.",
  },
};

/** Causes that we decide ourselves, by the recipient's reason. */
export const BY_REASON: Readonly<Record<string, Cause>> = {
  suppressed: {
    why: "The address is on your suppression list.",
    who: "you",
    next: "See why in GET /v1/suppressions. If the address is good again, remove it there and send again.",
  },
  unsubscribed: {
    why: "The recipient has unsubscribed, or does not get the topic of the message.",
    who: "recipient",
    next: "Send only messages that they need, without an unsubscribe link.",
  },
  [HELD_FOR.suspended]: {
    why: "Your project is suspended, because too many of its messages bounced or drew complaints.",
    who: "you",
    next: "Look at GET /v1/stats, clean your lists, and ask the operator to lift the suspension.",
  },
  [HELD_FOR.unverified]: {
    why: "The domain of From is not verified.",
    who: "you",
    next: "Publish its records, and call POST /v1/domains/{id}/verify.",
  },
  [HELD_FOR.paused]: {
    why: "Its broadcast is paused.",
    who: "you",
    next: "Resume or cancel the broadcast.",
  },
  [AWAITING_APPROVAL]: {
    why: "The key that sent it needs an approval for each message.",
    who: "you",
    next: "Approve or reject it with another key, by POST /v1/emails/{id}/approve or /reject.",
  },
  [KEY_REVOKED]: {
    why: "The key that sent it, or approved it, was revoked before its time came.",
    who: "you",
    next: "If it is still wanted, approve it by POST /v1/emails/{id}/approve, else cancel it. After 7 days it fails.",
  },
  [APPROVAL_EXPIRED]: {
    why: "It was not approved in time.",
    who: "you",
    next: "Send it again if it is still wanted.",
  },
  canceled: {
    why: "It was canceled before it was sent.",
    who: "nobody",
    next: "Send it again if it is still wanted.",
  },
  capture_only: {
    why: "It was accepted while all mail was captured, so it never leaves.",
    who: "you",
    next: "Send it again.",
  },
};

/** Causes by the subject of a refusal, which `readReply` reads from its text and codes. */
export const BY_CATEGORY: Readonly<Record<ReplyCategory, Cause>> = {
  recipient: {
    why: "The mailbox or its domain does not exist, or takes no mail.",
    who: "recipient",
    next: "Check the address for typing errors, or ask the person for another one.",
  },
  "mailbox-full": {
    why: "The mailbox is full.",
    who: "recipient",
    next: "Try again in a few days, or reach the person another way.",
  },
  policy: {
    why: "A rule of the provider does not allow the message.",
    who: "you",
    next: "Read the reply: it often names the rule or a page about it.",
  },
  reputation: {
    why: "The provider does not trust the address that the mail comes from.",
    who: "us",
    next: "Ask the operator to check with `postrider doctor` whether the address is on a blocklist, and to read the provider's page.",
  },
  authentication: {
    why: "The provider wants proof of the sender's domain, and this message has none: SPF, DKIM or DMARC failed.",
    who: "you",
    next: "Call POST /v1/domains/{id}/verify, and publish the missing records.",
  },
  rate: {
    why: "The provider limits how fast it accepts our mail.",
    who: "us",
    next: "Wait: the message leaves when the provider takes more.",
  },
  greylist: {
    why: "The mail server defers mail from senders that it does not know yet.",
    who: "provider",
    next: "Wait a few minutes: it is tried again automatically.",
  },
  content: {
    why: "The message itself was refused: its content, or its size.",
    who: "you",
    next: "Look at it with POST /v1/emails/check, change it, and send again.",
  },
  infrastructure: {
    why: "The mail server could not be reached, or has a problem.",
    who: "provider",
    next: "Wait: it is tried again while there is time. If all domains are affected, check this machine's network.",
  },
  protocol: {
    why: "The mail server did not understand something, or does not support it.",
    who: "us",
    next: "Read the conversation in GET /v1/emails/{id}/attempts.",
  },
  other: {
    why: "The mail server gave no reason that we know.",
    who: "provider",
    next: "Read its reply in GET /v1/emails/{id}/attempts.",
  },
};

/** Causes of a subject that an unusual party must change. */
export const BY_PARTY: Partial<Record<ReplyCategory, Partial<Record<ResponsibleParty, Omit<Cause, "who">>>>> =
  {
    policy: {
      us: {
        why: "A rule of the provider does not allow mail from our address.",
        next: "Ask the operator to read the reply, and the provider's page about it.",
      },
      recipient: {
        why: "The recipient, or its administrator, does not take this mail.",
        next: "Ask the recipient to allow your address.",
      },
    },
    reputation: {
      you: {
        why: "The provider does not trust your domain, a link in the message, or your list of recipients.",
        next: "Mail only people who asked for it, remove addresses that do not exist, and see the rates in GET /v1/stats.",
      },
    },
    authentication: {
      us: {
        why: "The provider does not accept our host: its reverse DNS, its name in EHLO, or a connection without TLS.",
        next: "Ask the operator to run `postrider doctor`, which names the record that is missing.",
      },
    },
    rate: {
      you: {
        why: "The provider limits how fast it accepts mail from your domain.",
        next: "Wait: the message leaves when the provider takes more. Spread large sends over more time.",
      },
      provider: {
        why: "The recipient is getting mail faster than its provider allows.",
        next: "Wait: it is tried again while there is time. Send this person less at once.",
      },
    },
  };

/** Why a rule does not forward a received message. */
export const UNFORWARDED: Readonly<Record<string, string>> = {
  loop: "it was forwarded before, and could go round for ever",
  automatic: "it is the answer of a program",
  spam: "it is filed as spam",
  already_forwarded: "the address gets it from another inbox of the project",
  address_not_confirmed: "its owner has not confirmed the address",
  content_gone: "its content is gone",
  rule_changed: "the rule was changed or deleted before",
  rule_disabled: "the rule was disabled before",
};
