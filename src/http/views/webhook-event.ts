import { type TSchema, Type } from "@sinclair/typebox";
import { EVENT_TYPES, type EventType, UNSUBSCRIBE_WAYS } from "../../core/messages/events.ts";
import { BY_TYPE } from "../routing/named-schemas.ts";
import { Nullable, OneOf, Timestamp } from "../routing/schemas.ts";
import { Address, AppliedRuleView, AttachmentView, AuthView, SenderView, SpamView } from "./received.ts";

const Text = Nullable(Type.String());
const Code = Nullable(Type.Integer());

const NOTE = "Absent if the webhook gets no content.";

/** Returns the field as one that a webhook without content does not get. A titled schema is shared, so it takes no note. */
function content<Field extends TSchema>(field: Field) {
  if (field.title !== undefined) return Type.Optional(field);
  const text = [field.description, NOTE].filter((part) => part !== undefined).join(" ");
  return Type.Optional({ ...field, description: text });
}

const ACCEPTED = Type.Object({
  mx: Nullable(Type.String({ description: "Host that accepted the message." })),
  tls: Nullable(Type.String({ description: "TLS version. Null: without TLS." })),
  smtpCode: Code,
  response: content(Nullable(Type.String({ description: "The whole reply." }))),
});

const REFUSAL = {
  category: Type.Optional(
    Nullable(
      Type.String({
        description:
          "Kind of problem: `recipient`, `mailbox-full`, `policy`, `reputation`, `authentication`, `rate`, `greylist`, `content`, `infrastructure`, `protocol` or `other`. More may come.",
      }),
    ),
  ),
  smtpCode: Type.Optional(Code),
  enhancedCode: Type.Optional(Text),
  diagnostic: content(Nullable(Type.String({ description: "The whole reply, or the error." }))),
  mx: Type.Optional(Text),
};
const Refused = Type.Object({ reason: Text, ...REFUSAL });

const VISIT = { ip: Text, userAgent: Text };
const Machine = Type.Boolean({ description: "True for a proxy, scanner or prefetch." });

const ARRIVAL = {
  inboxId: Text,
  from: content(Address),
  to: content(Type.Array(Address)),
  subject: content(Type.String()),
  auth: content(Nullable(AuthView)),
};

/** Details of each event type. If a type is not listed, it has none. */
const DETAILS: Partial<Readonly<Record<EventType, TSchema>>> = {
  accepted: Type.Optional(
    Type.Object({ scheduledAt: Timestamp }, { description: "Of a scheduled message." }),
  ),
  sending: Type.Object({ attempt: Type.Integer({ minimum: 1 }) }),
  sent: ACCEPTED,
  delivery: ACCEPTED,
  delivery_delayed: Type.Object({
    attempt: Type.Integer({ minimum: 1 }),
    nextAttemptAt: Nullable(Timestamp),
    ...REFUSAL,
  }),
  bounce: Type.Object({
    type: OneOf(["hard", "soft"], "A hard bounce suppresses the address for good, a soft one for 7 days."),
    reason: Text,
    ...REFUSAL,
  }),
  complaint: Type.Object({ feedbackType: Text }),
  rejected: Refused,
  rendering_failure: Type.Object({ ...REFUSAL, reason: content(Text) }),
  failed: Refused,
  open: Type.Object({
    ...VISIT,
    first: Type.Boolean({ description: "True for the recipient's first open, also by a machine." }),
    machine: Machine,
  }),
  click: Type.Object({ url: content(Type.String()), ...VISIT, machine: Machine }),
  unsubscribed: Type.Object({
    how: OneOf(UNSUBSCRIBE_WAYS, "The way that the recipient took: `page` is the button behind the link."),
    topicId: Type.Optional(
      Type.String({ description: "The topic that they left, if it is not the whole subscription." }),
    ),
  }),
  inbound_received: Type.Object({
    ...ARRIVAL,
    threadId: Text,
    text: content(Text),
    html: content(Text),
    truncated: content(
      Type.Boolean({
        description: "True if text or html is longer than the 256 KiB shown, or was removed by retention.",
      }),
    ),
    attachments: content(Type.Array(AttachmentView)),
    spam: Nullable(SpamView),
    sender: content(Nullable(SenderView)),
  }),
  inbound_rejected: Type.Object({
    reason: OneOf(
      ["dmarc", "rule", "dropped", "sender_blocked", "sender_unauthenticated", "sender_not_allowed"],
      "Who refused it: the policy of its author's domain, a rule, or the inbox, for its sender. `dropped`: a rule let it be accepted, and kept only its header.",
    ),
    rule: Type.Optional(AppliedRuleView),
    ...ARRIVAL,
  }),
};

function eventOf(type: EventType): TSchema {
  const details = DETAILS[type];
  return Type.Object(
    {
      id: Type.String({ description: "Id of the delivery. It stays the same in every retry and replay." }),
      type: Type.Literal(type),
      createdAt: { ...Timestamp, description: "When this attempt was signed: `t` of the signature." },
      data: Type.Object({
        messageId: Type.String(),
        senderId: Type.String(),
        email: Type.Optional(Type.String({ description: "The recipient." })),
        occurredAt: { ...Timestamp, description: "When it happened." },
        tags: Type.Array(Type.Object({ name: Type.String(), value: Type.String() })),
        testMode: Type.Optional(Type.Literal(true)),
        ...(details === undefined ? {} : { [type]: details }),
      }),
    },
    { title: `${inPascalCase(type)}Event` },
  );
}

/** `delivery_delayed` as `DeliveryDelayed`. */
function inPascalCase(type: EventType): string {
  return type.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** The body of a webhook request. */
export const WebhookEvent = Type.Union(EVENT_TYPES.map(eventOf), { title: "WebhookEvent", ...BY_TYPE });

/** The details of an event in a message's record: one field, which has the event's type as its name. */
export const EventDetails = Type.Partial(Type.Object(DETAILS as Record<string, TSchema>), {
  title: "EventDetails",
  description: "The details under the name of the event's type. Empty if the type has none.",
});
