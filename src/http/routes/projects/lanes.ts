import { type Static, Type } from "@sinclair/typebox";
import { type LaneRecord, openLane, type ReadLanesDeps, readLanes } from "../../../flows/lanes/read-lanes.ts";
import { wayOfLane } from "../../../flows/lanes/providers.ts";
import { ok } from "../../routing/answer.ts";
import { accountRoute, type Route } from "../../routing/route.ts";
import { Nullable, OneOf, showTime, Timestamp } from "../../routing/schemas.ts";

const Lane = Type.Object(
  {
    name: Type.String({
      description:
        "A provider (`google`, `mimecast:eu`), or the MX hosts: `mx1.example.com+mx2.example.com`; then `@` and the address of `EGRESS`, if it is set.",
      examples: ["yahoo"],
    }),
    title: Nullable(
      Type.String({
        description: "The provider, as its users know it. Null: no known one.",
        examples: ["Yahoo"],
      }),
    ),
    egress: Nullable(Type.String({ description: "The address that it sends from. Null: the system's." })),
    state: OneOf(
      ["steady", "slowed", "resting", "blocked"],
      "`slowed`: below its limits. `resting`: nothing leaves until `opensAt`. `blocked`: the provider refuses our address, so messages are held.",
    ),
    connections: Type.Integer({ description: "Maximum number of connections now, per worker." }),
    rate: Nullable(Type.Number({ description: "Messages a second now. Null: no limit.", examples: [2.5] })),
    limit: Nullable(
      Type.Number({ description: "Messages a second at most. Null: no limit.", examples: [20] }),
    ),
    opensAt: Nullable(Timestamp),
    reason: Nullable(
      Type.String({ description: "Category of the reply that slowed it.", examples: ["rate"] }),
    ),
    reply: Nullable(
      Type.String({
        description: "That reply.",
        examples: ["421 4.7.0 [TSS04] Messages temporarily deferred"],
      }),
    ),
    waiting: Type.Integer({
      description: "Recipients that wait in the memory of workers. Further ones may wait in the database.",
    }),
    day: Type.Object(
      { accepted: Type.Integer(), deferred: Type.Integer(), refused: Type.Integer() },
      { description: "Attempts since midnight UTC, by their outcome." },
    ),
    warmUp: Type.Optional(
      Type.Object(
        {
          day: Type.Integer({
            description:
              "Day of the warm-up, from 1. A day with trouble repeats, and one without mail does not count. 0: it has not begun.",
          }),
          cap: Type.Integer({ description: "Maximum number of attempts today (UTC)." }),
          used: Type.Integer({ description: "Attempts today." }),
        },
        { description: "Only while the address is new to the provider (`WARM_UP`)." },
      ),
    ),
  },
  { title: "Lane" },
);

/** Returns the routes of `/v1/lanes`. */
export function laneRoutes(deps: ReadLanesDeps): Route[] {
  return [
    accountRoute({
      method: "GET",
      path: "/v1/lanes",
      operationId: "listLanes",
      summary: "List the lanes of outgoing mail",
      description:
        "A lane is the way to one provider, with its pace, its connections and its rests. Lists those that are not steady, those of providers that have had mail today, and those that warm up. Requires an account-wide key.",
      scope: "metrics:read",
      accountWide: true,
      answers: { 200: Type.Object({ data: Type.Array(Lane) }) },
      handle: async () => ok({ data: (await readLanes(deps)).map(shown) }),
    }),
    accountRoute({
      method: "POST",
      path: "/v1/lanes/:name/open",
      operationId: "openLane",
      summary: "Open a lane that rests or is blocked",
      description:
        "Messages leave again at the rate that the lane had, for example after the provider has taken the address off its block list. Messages that were put off keep their times. Requires an account-wide key.",
      scope: "senders:write",
      accountWide: true,
      answers: { 200: Lane },
      handle: async ({ params }) => ok(shown(await openLane(deps, params.name))),
    }),
  ];
}

function shown({ delisting: _, opensAt, warmUp, ...lane }: LaneRecord): Static<typeof Lane> {
  const { egress } = wayOfLane(lane.name);
  const shownLane = { ...lane, egress, opensAt: opensAt === null ? null : showTime(opensAt) };
  return warmUp === null ? shownLane : { ...shownLane, warmUp };
}
