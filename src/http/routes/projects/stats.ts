import { type Static, Type } from "@sinclair/typebox";
import { invalid, readAll } from "../../../core/errors.ts";
import { FIRST_TIME } from "../../../core/time/date-times.ts";
import { DAY_MS } from "../../../core/time/units.ts";
import {
  INTERVALS,
  type Interval,
  type Range,
  readStats,
  SHOWN_DESTINATIONS,
} from "../../../flows/read/stats.ts";
import type { Db } from "../../../store/engine/client.ts";
import { OTHER_DOMAINS } from "../../../store/projects/stats.ts";
import { ok } from "../../routing/answer.ts";
import { rangeEnd } from "../../routing/day-or-time.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { DAY_OR_TIME, Nullable, OneOf, showTime, Timestamp } from "../../routing/schemas.ts";

const DEFAULT_DAYS = 7;

const Count = Type.Integer({ minimum: 0 });

const FIGURES = {
  accepted: Type.Integer({ minimum: 0, description: "Recipients of messages accepted for sending." }),
  sent: Type.Integer({ minimum: 0, description: "Handed to the smarthost, if one is configured." }),
  delivered: Type.Integer({ minimum: 0, description: "Accepted by the recipient's server." }),
  delayed: Type.Integer({ minimum: 0, description: "Deferrals. Each one counts." }),
  bounced: Count,
  complained: Count,
  rejected: Type.Integer({
    minimum: 0,
    description: "Recipients that were not tried, such as suppressed addresses.",
  }),
  failed: Type.Integer({ minimum: 0, description: "Includes rendering failures and canceled sends." }),
  opened: Type.Integer({ minimum: 0, description: "Recipients who opened. Machines do not count." }),
  clicked: Type.Integer({ minimum: 0, description: "Recipients who clicked. Machines do not count." }),
  received: Type.Integer({
    minimum: 0,
    description: "Messages received. A message to two inboxes counts twice.",
  }),
};

const StatsSchema = Type.Object(
  {
    data: Type.Array(Type.Object({ at: Timestamp, ...FIGURES }), {
      description: "Every interval of the range, oldest first, including those without messages.",
    }),
    totals: Type.Object(FIGURES),
    rates: Type.Object(
      { bounce: Type.Number(), complaint: Type.Number() },
      {
        description:
          "Shares from 0 to 1 of the recipients whose outcome became known in the range: sent, delivered, bounced, complained or failed. Each counts once. Simulated and rejected recipients and canceled sends do not count. Projects are suspended by the same rates.",
      },
    ),
    byDestination: Type.Array(
      Type.Object({
        domain: Type.String(),
        delivered: Count,
        delayed: Count,
        bounced: Count,
        medianSeconds: Nullable(
          Type.Number({
            description:
              "Median time from acceptance or `scheduledAt` to delivery, with an error of at most a tenth.",
          }),
        ),
      }),
      {
        description: `The ${SHOWN_DESTINATIONS} domains with the most recipients, over the UTC days of the range. Per day only the first 1000 domains are listed by name. The rest is \`${OTHER_DOMAINS}\`. Days older than 400 days may be deleted.`,
      },
    ),
    byProvider: Type.Array(
      Type.Object({
        provider: Type.String({ description: "Name of its lane.", examples: ["google"] }),
        title: Type.String({ examples: ["Google"] }),
        delivered: Count,
        delayed: Count,
        bounced: Count,
        complained: Count,
        complaintRate: Type.Number({
          description: "Complaints as a share of the delivered messages, from 0 to 1.",
        }),
        standing: Nullable(
          OneOf(
            ["good", "warn", "bad"],
            "`warn`: from 0.1 % complaints, `bad`: from 0.3 %, at which providers begin to refuse. Null: too few messages to tell.",
          ),
        ),
      }),
      {
        description:
          "Large providers of the recipients' mailboxes, over the UTC days of the range. Only messages that went straight to them count, and no simulated ones.",
      },
    ),
  },
  { title: "Stats" },
);

const StatsQuery = Type.Object({
  from: Type.Optional(
    Type.String({
      ...DAY_OR_TIME,
      description: `ISO 8601 time or UTC day at which the range begins. If absent, the range has ${DEFAULT_DAYS} days.`,
    }),
  ),
  to: Type.Optional(
    Type.String({
      ...DAY_OR_TIME,
      description: "ISO 8601 time at which the range ends (exclusive), or its last UTC day. If absent: now.",
    }),
  ),
  interval: Type.Optional(
    OneOf(
      ["hour", "day"],
      "UTC hours or days, `day` if absent. A range has at most 31 days by the hour and 366 by the day.",
    ),
  ),
});

/** Returns the route of `/v1/stats`. */
export function statsRoutes({ db }: { db: Db }): Route[] {
  return [
    projectRoute({
      method: "GET",
      path: "/v1/stats",
      operationId: "getStats",
      summary: "Get statistics of sent and received messages",
      description:
        "Every figure except `received` counts recipients, in the interval of the event. A message that is accepted on Monday and bounces on Tuesday counts on both days. If it bounces after its delivery, it counts as both. Test mode and the simulator count, but not in the rates. Figures stay if messages are deleted. Figures older than two years may be deleted.",
      scope: "metrics:read",
      query: StatsQuery,
      answers: { 200: StatsSchema },
      async handle({ senderId, query, now }) {
        const { interval = "day" } = query;
        const stats = await readStats(db, senderId, interval, rangeOf(query, interval, now));
        const data = stats.data.map(({ at, ...figures }) => ({ at: showTime(at), ...figures }));
        return ok({ ...stats, data } satisfies Static<typeof StatsSchema>);
      },
    }),
  ];
}

/** Returns the requested range. Throws 422 if a time is not valid, or if the range is reversed or too long. */
function rangeOf(query: Static<typeof StatsQuery>, interval: Interval, now: number): Range {
  const { intervalMs, longestMs } = INTERVALS[interval];
  const [asked, to] = readAll(
    () => rangeEnd("from", query.from),
    () => rangeEnd("to", query.to) ?? now,
  );
  const begun = Math.floor((to - 1) / intervalMs) * intervalMs;
  const from = asked ?? Math.max(begun + intervalMs - DEFAULT_DAYS * DAY_MS, FIRST_TIME);
  if (from >= to) throw invalid("from", "must be before the end of the range.");
  if (to - from > longestMs)
    throw invalid(
      "from",
      `must be at most ${longestMs / DAY_MS} days before the end of the range, by the ${interval}.`,
    );
  return { from, to };
}
