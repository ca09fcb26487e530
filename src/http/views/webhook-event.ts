import { type TSchema, Type } from "@sinclair/typebox";
import { EVENT_TYPES, type EventType } from "../../core/events.ts";
import { Nullable, OneOf, Timestamp } from "../schemas.ts";
import { Address, AttachmentView, Json } from "./message.ts";

const Text = Nullable(Type.String());
const Code = Nullable(Type.Integer());

const ACCEPTED = Type.Object({
  mx: Nullable(Type.String({ description: "Host that took the message." })),
  tls: Nullable(Type.String({ description: "TLS version; null: in the clear." })),
  smtpCode: Code,
  response: Nullable(Type.String({ description: "The whole reply." })),
});

const REFUSAL = {
  category: Type.Optional(Nullable(Type.String({ description: "What kind of trouble it was, in a word." }))),
  smtpCode: Type.Optional(Code),
  enhancedCode: Type.Optional(Text),
  diagnostic: Type.Optional(Nullable(Type.String({ description: "The whole reply, or what went wrong." }))),
  mx: Type.Optional(Text),
};
const Refused = Type.Object({ reason: Text, ...REFUSAL });

const VISIT = { ip: Text, userAgent: Text };
const Machine = Type.Boolean({ description: "A proxy, scanner or prefetch, no person." });

const ARRIVAL = {
  inboxId: Text,
  from: Address,
  to: Type.Array(Address),
  subject: Type.String(),
  auth: Nullable(Json),
};

/** What `data` holds under the name of the event's type; a type that is not here has nothing of its own. */
const DETAILS: Partial<Readonly<Record<EventType, TSchema>>> = {
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
  rendering_failure: Refused,
  failed: Refused,
  open: Type.Object({
    ...VISIT,
    first: Type.Boolean({ description: "The recipient's first open, by anyone." }),
    machine: Machine,
  }),
  click: Type.Object({ url: Type.String(), ...VISIT, machine: Machine }),
  inbound_received: Type.Object({
    ...ARRIVAL,
    threadId: Text,
    text: Text,
    html: Text,
    truncated: Type.Boolean({
      description: "Text or html has more than the 256 KiB shown here, or has passed its retention.",
    }),
    attachments: Type.Array(AttachmentView),
  }),
  inbound_rejected: Type.Object({ reason: Type.Literal("dmarc"), ...ARRIVAL }),
};

function eventOf(type: EventType): TSchema {
  const details = DETAILS[type];
  return Type.Object(
    {
      id: Type.String({ description: "Id of the delivery, the same in every retry and replay." }),
      type: Type.Literal(type),
      createdAt: { ...Timestamp, description: "When this attempt was signed; `t` of the signature." },
      data: Type.Object({
        messageId: Type.String(),
        senderId: Type.String(),
        email: Type.Optional(Type.String({ description: "The recipient concerned." })),
        occurredAt: { ...Timestamp, description: "When it happened." },
        tags: Type.Array(Type.Object({ name: Type.String(), value: Type.String() })),
        testMode: Type.Optional(Type.Literal(true)),
        ...(details === undefined ? {} : { [type]: details }),
      }),
    },
    { title: type },
  );
}

/** The body of a push to a webhook. */
export const WebhookEvent = Type.Union(EVENT_TYPES.map(eventOf));
