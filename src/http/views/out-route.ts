import { type Static, Type } from "@sinclair/typebox";
import { DAY_MS } from "../../core/time/units.ts";
import type { OutRoute } from "../../store/projects/routes.ts";
import { GivenRouteEvents, RouteEvents, showEvents } from "./route-events.ts";
import { Name, Nullable, OneOf, showTime, Timestamp } from "../routing/schemas.ts";

const MAX_URL_CHARS = 2000;
/** Messages a second to a relay. */
const MIN_RATE = 0.01;
const MAX_RATE = 10_000;
/** Largest target of a warm-up, messages a day. */
const MAX_TARGET = 10_000_000;
const MAX_ID_CHARS = 64;

const KIND = "`mx`: straight to the recipients' mail servers. `relay`: through a smarthost.";

/** A route as the API shows it: all but its owner and its secrets. */
export type ShownRoute = Omit<
  OutRoute,
  "accountId" | "sealedRelayUrl" | "sealedProof" | "kind" | "createdAt"
> & {
  kind: OutRoute["kind"] | "capture";
  createdAt: number | null;
};

/** A route as the API shows it. */
export const OutRouteView = Type.Object(
  {
    id: Type.String({ description: "`default` for the route that the settings make." }),
    name: Type.String(),
    kind: OneOf(
      ["mx", "relay", "capture"],
      `${KIND} \`capture\`: mail stays on this machine. Only the default route has this kind.`,
    ),
    relayHost: Nullable(
      Type.String({ description: "Host and port of the relay.", examples: ["smtp.example.com:587"] }),
    ),
    pool: Nullable(Type.String()),
    ratePerSecond: Nullable(Type.Number()),
    warmUp: Nullable(
      Type.Object(
        {
          targetPerDay: Type.Integer(),
          overflowRouteId: Nullable(Type.String()),
          startedAt: Timestamp,
        },
        { title: "RouteWarmUp" },
      ),
    ),
    events: Nullable(RouteEvents),
    createdAt: Nullable(Timestamp),
  },
  { title: "Route" },
);

const Pool = Type.String({
  maxLength: 32,
  pattern: "^[A-Za-z0-9-]+$",
  description: "Pool of `EGRESS` that its mail leaves from. For kind `mx`.",
  examples: ["bulk"],
});
const Rate = Type.Number({
  minimum: MIN_RATE,
  maximum: MAX_RATE,
  description: "Maximum number of messages a second that a worker sends to the relay. For kind `relay`.",
  examples: [14],
});
const WarmUp = Type.Object(
  {
    targetPerDay: Type.Integer({
      minimum: 1,
      maximum: MAX_TARGET,
      description:
        "Messages a day to which it grows, in the steps of `WARM_UP`: through the relay, or for kind `mx` to each provider from each address.",
      examples: [20_000],
    }),
    overflowRouteId: Type.Optional(
      Nullable(
        Type.String({
          minLength: 1,
          maxLength: MAX_ID_CHARS,
          description: "Route of what is above the day's cap. Null: it takes the next route, or waits.",
          examples: ["default"],
        }),
      ),
    ),
  },
  {
    title: "NewRouteWarmUp",
    description: "It begins on the day on which it is set. A new target does not begin it again. Null: none.",
  },
);

const CHANGEABLE = {
  relayUrl: Type.Optional(
    Type.String({
      maxLength: MAX_URL_CHARS,
      description:
        "`smtp(s)://user:pass@host:port`, as `SMTP_RELAY_URL`. It is stored sealed and never shown.",
      examples: ["smtps://user:secret@smtp.example.com:465"],
    }),
  ),
  pool: Type.Optional(Nullable(Pool)),
  ratePerSecond: Type.Optional(Nullable(Rate)),
  warmUp: Type.Optional(Nullable(WarmUp)),
  events: Type.Optional(Nullable(GivenRouteEvents)),
};

/** A new route. */
export const CreateRoute = Type.Object({
  name: Name,
  kind: Type.Union([Type.Literal("mx"), Type.Literal("relay")], { description: KIND, examples: ["relay"] }),
  ...CHANGEABLE,
});

/** Changes of a route. */
export const UpdateRoute = Type.Object({ name: Type.Optional(Name), ...CHANGEABLE });

/** Returns a route as the API shows it. @param secret the secret in the URL of its events, if a request has just set it */
export function showRoute(
  { warmUp, createdAt, ...route }: ShownRoute,
  publicUrl: string,
  secret: string | null = null,
): Static<typeof OutRouteView> {
  const { id, name, kind, relayHost, pool, ratePerSecond } = route;
  return {
    id,
    name,
    kind,
    relayHost,
    pool,
    ratePerSecond,
    warmUp:
      warmUp === null
        ? null
        : {
            targetPerDay: warmUp.target,
            overflowRouteId: warmUp.overflowRouteId,
            startedAt: showTime(warmUp.from * DAY_MS),
          },
    events: showEvents(route, publicUrl, secret),
    createdAt: showTime(createdAt),
  };
}
