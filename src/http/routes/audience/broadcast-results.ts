import { type Static, Type } from "@sinclair/typebox";
import { existingBroadcast } from "../../../flows/broadcasts/save.ts";
import {
  BROADCAST_FIGURES,
  type BroadcastFigures,
  figuresByTime,
  figuresOfBroadcasts,
  NO_FIGURES,
  reachedBy,
} from "../../../store/audience/broadcast-figures.ts";
import {
  BROADCAST_OUTCOMES,
  type BroadcastMessage,
  listBroadcastMessages,
} from "../../../store/audience/broadcast-messages.ts";
import { figuresOfVariants } from "../../../store/audience/broadcast-variants.ts";
import { RECIPIENT_STATUSES } from "../../../core/messages/states.ts";
import { ok } from "../../routing/answer.ts";
import type { Parts } from "../../routing/parts.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { Nullable, OneOf, PAGE_QUERY, PageOf, showTime, Timestamp } from "../../routing/schemas.ts";
import { rounded, showTestResults, TestResultsView } from "../../views/audience/ab-test.ts";
import { AS_CSV, pageOrWhole } from "../../routing/whole-list.ts";

/** Hours of an interval, and intervals of an answer. */
const INTERVALS = { hour: 1, day: 24 } as const;
const MAX_INTERVALS = 1000;

const RecipientView = Type.Object(
  {
    id: Type.String({ description: "Id of the message." }),
    email: Type.String(),
    contactId: Nullable(Type.String({ description: "Null: no contact has the address any more." })),
    status: OneOf(RECIPIENT_STATUSES),
    reason: Nullable(Type.String({ description: "Reason of the status, such as `unsubscribed`." })),
    bounceType: Nullable(OneOf(["hard", "soft"], "Null: it has not bounced.")),
    opened: Type.Boolean({ description: "Whether a person has opened it." }),
    clicked: Type.Boolean({ description: "Whether a person has clicked a link of it." }),
    lastEventAt: Nullable(Timestamp),
  },
  { title: "BroadcastRecipient" },
);
const COLUMNS = [
  "email",
  "status",
  "reason",
  "bounceType",
  "opened",
  "clicked",
  "lastEventAt",
  "id",
  "contactId",
] as const;

function showRecipient(message: BroadcastMessage): Static<typeof RecipientView> {
  const { opens, clicks, lastEventAt, ...recipient } = message;
  return { ...recipient, opened: opens > 0, clicked: clicks > 0, lastEventAt: showTime(lastEventAt) };
}

const Rate = (description: string) => Nullable(Type.Number({ description, examples: [0.98] }));
const ResultsView = Type.Object(
  {
    abTest: Nullable(TestResultsView),
    rates: Type.Object(
      {
        delivered: Rate("Of the messages made."),
        bounced: Rate("Of the messages made."),
        complained: Rate("Of those delivered, as are the next."),
        opened: Rate("Without machines."),
        clicked: Rate("Without machines."),
        unsubscribed: Rate("By its link."),
      },
      { description: "From 0 to 1. Null: nothing to divide by.", title: "BroadcastRates" },
    ),
    data: Type.Array(
      Type.Object({
        at: Timestamp,
        ...(Object.fromEntries(BROADCAST_FIGURES.map((figure) => [figure, Type.Integer()])) as Record<
          keyof BroadcastFigures,
          ReturnType<typeof Type.Integer>
        >),
      }),
      { description: `Oldest first, without intervals in which nothing happened; at most ${MAX_INTERVALS}.` },
    ),
  },
  { title: "BroadcastResults" },
);

/** Returns the routes of what became of a broadcast. */
export function broadcastResultRoutes(deps: Parts): Route[] {
  const { db } = deps;
  return [
    projectRoute({
      method: "GET",
      path: "/v1/broadcasts/:id/recipients",
      operationId: "listBroadcastRecipients",
      summary: "List the recipients of a broadcast, the last first",
      description: `With the state of their messages. ${AS_CSV}`,
      scope: "contacts:read",
      query: Type.Object({
        ...PAGE_QUERY,
        outcome: Type.Optional(
          OneOf(
            BROADCAST_OUTCOMES,
            "Only recipients of whom this holds. `sent`: the message has left. Opens and clicks are of people.",
          ),
        ),
      }),
      answers: { 200: PageOf(RecipientView) },
      async handle({ request, senderId, params: { id }, query: { outcome }, page }) {
        await existingBroadcast(db, senderId, id);
        return pageOrWhole(
          deps,
          { request, page },
          {
            owner: senderId,
            read: (after, take) =>
              listBroadcastMessages(db, { senderId, broadcastId: id }, { outcome }, after, take),
            show: showRecipient,
            position: (message) => message.id,
            columns: COLUMNS,
          },
        );
      },
    }),
    projectRoute({
      method: "GET",
      path: "/v1/broadcasts/:id/results",
      operationId: "getBroadcastResults",
      summary: "Get the rates of a broadcast, and its figures over time",
      description: "Opens and clicks are of people: each recipient counts once, and machines do not count.",
      scope: "audience:read",
      query: Type.Object({ interval: Type.Optional(OneOf(["hour", "day"], "Default: `hour`.")) }),
      answers: { 200: ResultsView },
      errors: ["not_found"],
      async handle({ senderId, params: { id }, query: { interval = "hour" } }) {
        const { broadcast } = await existingBroadcast(db, senderId, id);
        const figures = (await figuresOfBroadcasts(db, senderId, [id])).get(id);
        const data = await figuresByTime(db, id, INTERVALS[interval], MAX_INTERVALS);
        const { abTest } = broadcast;
        return ok({
          abTest: abTest && showTestResults(broadcast, abTest, await figuresOfVariants(db, id)),
          rates: ratesOf(broadcast.recipients, figures),
          data: data.map(({ at, ...rest }) => ({ at: showTime(at), ...rest })),
        });
      },
    }),
  ];
}

function ratesOf(made: number, figures: BroadcastFigures = NO_FIGURES): Static<typeof ResultsView>["rates"] {
  const { bounced, complained, unsubscribed } = figures;
  const { arrived, opened, clicked } = reachedBy(figures);
  const rate = (part: number, whole: number) => rounded(whole === 0 ? null : part / whole);
  return {
    delivered: rate(arrived, made),
    bounced: rate(bounced, made),
    complained: rate(complained, arrived),
    opened: rate(opened, arrived),
    clicked: rate(clicked, arrived),
    unsubscribed: rate(unsubscribed, arrived),
  };
}
