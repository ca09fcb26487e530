import { type Static, Type } from "@sinclair/typebox";
import { TRUSTS } from "../../core/messages/sender.ts";
import { MAX_SPAM_SYMBOLS } from "../../core/messages/spam.ts";
import { UNREAD } from "../../core/messages/unread.ts";
import { MAX_ATTENDEES } from "../../core/messages/invitation.ts";
import type { Forward } from "../../store/rules/rule-effects.ts";
import { Nullable, OneOf } from "../routing/schemas.ts";

/** A mailbox of a header field. */
export const Address = Type.Object(
  { email: Type.String(), name: Type.Optional(Type.String()) },
  { title: "MailAddress" },
);
/** An attachment as a message shows it. */
export const AttachmentView = Type.Object(
  {
    id: Type.String(),
    filename: Type.String(),
    contentType: Type.String(),
    size: Type.Integer({ description: "Bytes." }),
    contentId: Nullable(Type.String()),
    disposition: OneOf(["attachment", "inline"]),
  },
  { title: "Attachment" },
);

/** Results of checks (RFC 8601 §2.7). */
const Result = OneOf(["pass", "fail", "softfail", "neutral", "none", "policy", "temperror", "permerror"]);
const Domain = Nullable(Type.String({ examples: ["example.com"] }));

/** The findings of the checks of a received message. */
export const AuthView = Type.Object(
  {
    spf: Type.Object({ result: Result, domain: Domain }),
    dkim: Type.Array(
      Type.Object({ result: Result, domain: Domain, selector: Nullable(Type.String({ examples: ["s1"] })) }),
      { description: "One per signature." },
    ),
    dmarc: Type.Object({
      result: Result,
      policy: Nullable(OneOf(["none", "quarantine", "reject"], "The policy for mail that fails.")),
      domain: Domain,
    }),
    arc: Type.Object({ result: Result }),
  },
  { title: "Authentication", description: "The findings of SPF, DKIM, DMARC and ARC." },
);

/** A rule that a message met. */
export const AppliedRuleView = Type.Object(
  { id: Type.String(), name: Type.String({ examples: ["Newsletters"] }) },
  { title: "AppliedRule" },
);

/** The verdict of the spam filter. */
export const SpamView = Type.Object(
  {
    score: Type.Number({ examples: [7.4] }),
    required: Type.Number({
      description: "Points from which the filter takes a message for spam.",
      examples: [15],
    }),
    action: Type.String({
      description: "The filter's advice, such as `no action`, `add header` or `reject`.",
      examples: ["add header"],
    }),
    symbols: Type.Array(
      Type.Object({
        name: Type.String({ examples: ["DMARC_POLICY_REJECT"] }),
        score: Type.Number({ examples: [2] }),
      }),
      { description: `Rules that the message met, the heaviest first; at most ${MAX_SPAM_SYMBOLS}.` },
    ),
  },
  {
    title: "Spam",
    description:
      "The verdict of the spam filter. Null if there is no filter, it failed, or the message is too large for it.",
  },
);

/** The event that a received message invites to. */
export const InvitationView = Type.Object(
  {
    method: Type.String({ description: "`REQUEST` asks for an answer (RFC 5546).", examples: ["REQUEST"] }),
    uid: Type.String({ examples: ["7f3a@calendar.example"] }),
    summary: Nullable(Type.String({ examples: ["Lunch"] })),
    location: Nullable(Type.String({ examples: ["Room 4"] })),
    start: Nullable(
      Type.String({
        description: "As written: UTC ends in Z, other times are local to `timeZone`, a date is a whole day.",
        examples: ["2026-12-01T12:00:00"],
      }),
    ),
    end: Nullable(Type.String({ examples: ["2026-12-01T13:00:00"] })),
    timeZone: Nullable(Type.String({ examples: ["Europe/Berlin"] })),
    recurring: Type.Boolean(),
    organizer: Nullable(Type.String({ examples: ["ada@example.com"] })),
    attendees: Type.Array(
      Type.Object({ email: Type.String(), answer: Type.String({ examples: ["needs-action"] }) }),
      { description: `At most ${MAX_ATTENDEES}.` },
    ),
  },
  { title: "Invitation", description: "The event of the first calendar file. Null if there is none." },
);

/** Says what was not read of a received message. */
export const UnreadView = OneOf(
  UNREAD,
  [
    "Null: all parts were read. `too_many_parts`, `nested_too_deep`, `part_headers_too_long`: the rest is the file `unread-parts.txt`.",
    "Others: only the header was read. `/raw` has the whole message.",
  ].join(" "),
);

/** The sender of a received message, and how far to trust it. */
export const SenderView = Type.Object(
  {
    address: Type.String({
      description: "The address in From, with its domain in A-labels.",
      examples: ["ada@example.com"],
    }),
    authenticated: Type.Boolean({
      description:
        "True if DMARC passes for the one address in From. A domain without a DMARC record never passes.",
    }),
    known: Type.Boolean({
      description: "True if the sender is authenticated, and is a contact or was written to in this thread.",
    }),
    trust: OneOf(TRUSTS, "The same in one word, to act on. Of simulated mail: `unauthenticated`."),
  },
  {
    title: "SenderVerdict",
    description: "Who wrote: what is proven about From. Null for mail that was stored before version 1.1.",
  },
);

/** The SMTP transaction of a received message. */
export const EnvelopeView = Type.Object(
  {
    mailFrom: Type.String({ description: "Reverse-path. Empty: the null one." }),
    rcptTo: Type.Array(Type.String()),
    ip: Type.String(),
    helo: Type.String(),
    tls: Nullable(Type.String({ description: "TLS version. Null: without TLS." })),
  },
  { title: "Envelope", description: "The SMTP transaction that brought the message." },
);

/** A forward by a rule. */
export const ForwardView = Type.Object(
  {
    ruleId: Type.String({ examples: ["rul_01hzy8"] }),
    to: Nullable(Type.String({ description: "Null: neither rule nor sent message is there to tell." })),
    emailId: Nullable(
      Type.String({ description: "The message that was sent. Its record has each attempt." }),
    ),
    status: Type.String({
      description: "Status of that message; `waiting` before it is sent; `not_forwarded` with the `reason`.",
      examples: ["delivered"],
    }),
    reason: Nullable(
      Type.String({
        description:
          "`loop`, `automatic`, `spam`, `already_forwarded` from another inbox of the project, `address_not_confirmed`, `content_gone`, `message_gone`, `rule_changed`, `rule_disabled`, or the code of the error that refused it.",
        examples: ["loop"],
      }),
    ),
  },
  { title: "Forward" },
);

/** Returns a forward as the API shows it. */
export function showForward({ isWaiting, status, reason, ...forward }: Forward): Static<typeof ForwardView> {
  const none = reason === null ? "deleted" : "not_forwarded";
  return { ...forward, status: isWaiting ? "waiting" : (status ?? none), reason };
}
