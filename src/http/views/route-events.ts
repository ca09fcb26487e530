import { type Static, Type } from "@sinclair/typebox";
import { RELAY_PROVIDERS } from "../../core/messages/relay-providers.ts";
import type { OutRoute } from "../../store/projects/routes.ts";
import { OneOf } from "../routing/schemas.ts";

const MAX_PROOF_CHARS = 500;
const PROVIDER = OneOf(RELAY_PROVIDERS, "The provider of the relay.");

function Proof(description: string, example: string) {
  const examples = [example];
  return Type.Optional(Type.String({ minLength: 1, maxLength: MAX_PROOF_CHARS, description, examples }));
}

/** The events of a route as they are shown. */
export const RouteEvents = Type.Object(
  {
    provider: PROVIDER,
    url: Type.String({
      description:
        "URL to enter at the provider. For `postmark` it has a secret, which only the answer that sets it shows.",
      examples: ["https://mail.example.com/v1/routes/rte_01jxsh8k2v0000000000000000/events/ses"],
    }),
  },
  {
    title: "RouteEvents",
    description:
      "Where the provider of the relay posts what became of mail: its deliveries, bounces, complaints and delays become events of the messages.",
  },
);

/** Events of a route as a request sets them. */
export const GivenRouteEvents = Type.Object(
  {
    provider: PROVIDER,
    topicArn: Proof(
      "For `ses`: the SNS topic that SES publishes to. No other topic is listened to.",
      "arn:aws:sns:eu-west-1:123456789012:mail",
    ),
    secret: Proof("For `postmark`: a secret in the URL. If absent, one is made.", "kT3vQ9mZr1xWc8bN5yLd2pGh"),
    signingKey: Proof(
      "For `mailgun`: the HTTP webhook signing key of the account.",
      "3a1f0c9b7d5e4f2a8c6b1d0e9f7a5c3b",
    ),
    publicKey: Proof(
      "For `sendgrid`: the verification key of the signed event webhook.",
      "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE…",
    ),
  },
  {
    title: "NewRouteEvents",
    description:
      "Takes the events of the relay's provider. For kind `relay`. The key, topic or secret that proves them is stored sealed.",
    examples: [{ provider: "postmark" }],
  },
);

/** Returns the events of a route as they are shown. @param secret what a request has just set; null if none */
export function showEvents(
  { id, eventsProvider: provider }: Pick<OutRoute, "id" | "eventsProvider">,
  publicUrl: string,
  secret: string | null,
): Static<typeof RouteEvents> | null {
  if (provider === null) return null;
  const query = secret === null ? "" : `?secret=${secret}`;
  return { provider, url: `${publicUrl}/v1/routes/${id}/events/${provider}${query}` };
}
