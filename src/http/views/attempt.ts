import { Type } from "@sinclair/typebox";
import type { RecipientStatus } from "../../core/messages/states.ts";
import type { ListedAttempt } from "../../store/messages/attempts.ts";
import { Nullable, OneOf, showTime, Timestamp } from "../routing/schemas.ts";

/** States that an attempt can leave its recipient in. */
const OUTCOMES: readonly RecipientStatus[] = [
  "sent",
  "delivered",
  "delivery_delayed",
  "bounced",
  "complained",
  "rejected",
  "rendering_failure",
  "failed",
];

const ROUTE_ID = "rte_01jxsh8k2v0000000000000000";

/** A delivery attempt as the API shows it. */
export const AttemptView = Type.Object(
  {
    email: Type.String({ description: "The recipient." }),
    attempt: Type.Integer({ minimum: 1, description: "Number of the attempt for this recipient." }),
    status: OneOf(OUTCOMES, "Where the attempt has left the recipient."),
    startedAt: Timestamp,
    durationMs: Type.Integer({ description: "Milliseconds." }),
    mx: Nullable(Type.String({ description: "Host that answered, or the last one tried." })),
    ip: Nullable(Type.String()),
    tls: Nullable(Type.String({ description: "TLS version. Null: without TLS." })),
    egress: Nullable(
      Type.String({
        description: "Our own address that the message came from. Null: the system chose it.",
        examples: ["203.0.113.5"],
      }),
    ),
    routeId: Nullable(
      Type.String({ description: "The route that it took. Null: the default one.", examples: [ROUTE_ID] }),
    ),
    smtpCode: Nullable(Type.Integer()),
    enhancedCode: Nullable(Type.String()),
    diagnostic: Nullable(Type.String({ description: "The reply that decided the outcome, or the error." })),
    lines: Type.Array(Type.String(), {
      description:
        "The SMTP conversation. `C: ` marks this service, `S: ` the other server, and `* ` other events. It contains neither the message nor a password. If it is very long, its middle is left out.",
      examples: [
        [
          "* connecting to mx.example.com [192.0.2.25]:25",
          "S: 220 mx.example.com ESMTP",
          "C: EHLO mx.postrider.example",
          "S: 250 mx.example.com PIPELINING SIZE 10485760",
          "C: MAIL FROM:<b+0k3v@bounce.postrider.example> SIZE=4711",
          "C: RCPT TO:<ada@example.com>",
          "C: DATA",
          "S: 250 2.1.0 Ok",
          "S: 550 5.1.1 No such user",
          "S: 554 5.5.1 No valid recipients",
        ],
      ],
    }),
  },
  {
    title: "DeliveryAttempt",
    description: "One delivery attempt to one recipient, with its SMTP conversation.",
  },
);

/** Returns an attempt as lists show it. */
export function showAttempt(attempt: ListedAttempt): Record<string, unknown> {
  return {
    email: attempt.email,
    attempt: attempt.attempt,
    status: attempt.outcome,
    startedAt: showTime(attempt.startedAt),
    durationMs: attempt.durationMs,
    mx: attempt.mx,
    ip: attempt.ip,
    tls: attempt.tls,
    egress: attempt.egress,
    routeId: attempt.routeId,
    smtpCode: attempt.smtpCode,
    enhancedCode: attempt.enhancedCode,
    diagnostic: attempt.diagnostic,
    lines: attempt.transcript,
  };
}
