import { type Static, Type } from "@sinclair/typebox";
import { invalid, readAll } from "../../core/errors.ts";
import { FIRST_TIME, NO_DAY_OR_TIME, parseDay, parseTime } from "../../core/date-times.ts";
import { DAY_MS } from "../../core/time-units.ts";
import { INTERVALS, type Interval, type Range, readStats, SHOWN_DESTINATIONS } from "../../flows/stats.ts";
import type { Db } from "../../store/engine/client.ts";
import { OTHER_DOMAINS } from "../../store/stats.ts";
import { ok } from "../answer.ts";
import { projectRoute, type Route } from "../route.ts";
import { Nullable, OneOf, showTime, Timestamp } from "../schemas.ts";

/** What is shown where no range is asked for. */
const DEFAULT_DAYS = 7;

const Count = Type.Integer({ minimum: 0 });

const FIGURES = {
  accepted: Type.Integer({ minimum: 0, description: "Recipients of messages taken for sending." }),
  sent: Type.Integer({ minimum: 0, description: "Handed to the smarthost, where all mail goes to one." }),
  delivered: Type.Integer({ minimum: 0, description: "Taken by the recipient's server." }),
  delayed: Type.Integer({ minimum: 0, description: "Put off, each time anew." }),
  bounced: Count,
  complained: Count,
  rejected: Type.Integer({ minimum: 0, description: "Not sent to, such as suppressed addresses." }),
  failed: Type.Integer({ minimum: 0, description: "With rendering failures and canceled sends." }),
  opened: Type.Integer({ minimum: 0, description: "Recipients who have opened, machines left out." }),
  clicked: Type.Integer({ minimum: 0, description: "Recipients who have clicked, machines left out." }),
  received: Type.Integer({ minimum: 0, description: "Messages received, one an inbox." }),
};

const StatsSchema = Type.Object(
  {
    data: Type.Array(Type.Object({ at: Timestamp, ...FIGURES }), {
      description: "Every interval that the range touches, oldest first, those without mail too.",
    }),
    totals: Type.Object(FIGURES),
    rates: Type.Object(
      { bounce: Type.Number(), complaint: Type.Number() },
      {
        description:
          "Shares, from 0 to 1, of the recipients whose outcome became known in the range: sent, delivered, bounced, complained or failed, each once. Simulated recipients, rejected ones and canceled sends are not among them. The rule is that by which a project is suspended.",
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
              "Half of the deliveries took at most so long from acceptance, or from `scheduledAt`; within a tenth.",
          }),
        ),
      }),
      {
        description: `The ${SHOWN_DESTINATIONS} domains with the most of these, over the UTC days that the range touches. Of a day the first 1000 domains are told apart, the rest is \`${OTHER_DOMAINS}\`; after 400 days they may be forgotten.`,
      },
    ),
  },
  { title: "Stats" },
);

const StatsQuery = Type.Object({
  from: Type.Optional(
    Type.String({
      description: `ISO 8601 time or UTC day; left out: ${DEFAULT_DAYS} days, the one of \`to\` the last of them.`,
    }),
  ),
  to: Type.Optional(
    Type.String({
      description: "ISO 8601 time, not in the range itself, or its last UTC day; left out: now.",
    }),
  ),
  interval: Type.Optional(
    OneOf(["hour", "day"], "UTC; `day` when left out. Ranges to 31 days by the hour, 366 by the day."),
  ),
});

/** `/v1/stats`. */
export function statsRoutes({ db }: { db: Db }): Route[] {
  return [
    projectRoute({
      method: "GET",
      path: "/v1/stats",
      operationId: "getStats",
      summary: "Read figures of mail sent and received",
      description:
        "Every figure but `received` counts recipients, in the interval in which it happened to them: a mail accepted on Monday and bounced on Tuesday is accepted on Monday and bounced on Tuesday, and one that bounced after its delivery is both. Mail of test mode and to the simulator counts, but not in the rates. Figures stay when messages are deleted; after two years they may be forgotten.",
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

/** The range asked for. Throws 422 for what is no time, ends before it begins, or is longer than is answered. */
function rangeOf(query: Static<typeof StatsQuery>, interval: Interval, now: number): Range {
  const { intervalMs, longestMs } = INTERVALS[interval];
  const [asked, to] = readAll(
    () => timeOf("from", query.from),
    () => timeOf("to", query.to) ?? now,
  );
  const begun = Math.floor((to - 1) / intervalMs) * intervalMs;
  const from = asked ?? Math.max(begun + intervalMs - DEFAULT_DAYS * DAY_MS, FIRST_TIME);
  if (from >= to) throw invalid("from", "The range ends before it begins.");
  if (to - from > longestMs)
    throw invalid("from", `By the ${interval}, a range is at most ${longestMs / DAY_MS} days long.`);
  return { from, to };
}

function timeOf(name: "from" | "to", text: string | undefined): number | null {
  if (text === undefined) return null;
  const day = parseDay(text);
  // A day is meant whole, whichever end of the range it is.
  if (day !== null) return name === "to" ? day + DAY_MS : day;
  const at = parseTime(text);
  if (at === null) throw invalid(name, NO_DAY_OR_TIME);
  return at;
}
