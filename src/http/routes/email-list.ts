import { type Static, Type } from "@sinclair/typebox";
import { normalizeAddress } from "../../core/addresses.ts";
import { invalid, readAll } from "../../core/errors.ts";
import { DAY_OR_TIME_EXPECTED, parseDay, parseTime } from "../../core/time/date-times.ts";
import type { Db } from "../../store/engine/client.ts";
import { listMessages, type MessageFilter } from "../../store/search/message-list.ts";
import { ok } from "../answer.ts";
import { projectRoute, type Route } from "../route.ts";
import { DAY_OR_TIME, EMAIL, OneOf, PAGE_QUERY, PageOf, Search } from "../schemas.ts";
import { MESSAGE_STATUSES } from "../../core/messages/states.ts";
import { MessageSummaryView, showSummary } from "../views/message.ts";

const ListQuery = Type.Object({
  ...PAGE_QUERY,
  status: Type.Optional(OneOf([...MESSAGE_STATUSES, "complaint"], "`complaint` means `complained`.")),
  direction: Type.Optional(OneOf(["inbound", "outbound"])),
  q: Search(
    "Part of a recipient, the sender or the subject. Case does not matter. One page searches at most 2000 messages, so it may be short or empty although more follow.",
  ),
  from: Type.Optional(Type.String({ ...EMAIL, maxLength: 320, description: "The sender's address." })),
  to: Type.Optional(
    Type.String({ ...EMAIL, maxLength: 320, description: "A recipient's address in `to`, `cc` or `bcc`." }),
  ),
  tag: Type.Optional(
    Type.String({
      maxLength: 513,
      pattern: "^[^:]+:.+$",
      expected: "a tag as name:value",
      examples: ["campaign:spring"],
      description: "A tag as `name:value`.",
    }),
  ),
  after: Type.Optional(
    Type.String({
      description: "Created at or after this ISO 8601 time, or since the start of this UTC day.",
      ...DAY_OR_TIME,
    }),
  ),
  before: Type.Optional(
    Type.String({
      description: "Created before this ISO 8601 time, or before the start of this UTC day.",
      ...DAY_OR_TIME,
    }),
  ),
});

/** Returns the route of `GET /v1/emails`. */
export function emailListRoute({ db }: { db: Db }): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/emails",
    operationId: "listEmails",
    scope: "emails:read",
    summary: "List messages, newest first",
    description: "Sent and received messages of the project. Filters can be combined.",
    query: ListQuery,
    answers: { 200: PageOf(MessageSummaryView) },
    async handle({ senderId, query, page: openedPage }) {
      const page = openedPage();
      const { messages, stoppedAt } = await listMessages(
        db,
        senderId,
        filterOf(query),
        page.after,
        page.take,
      );
      return ok(page.answer(messages, showSummary, ({ id }) => id, stoppedAt));
    },
  });
}

function filterOf(query: Static<typeof ListQuery>): MessageFilter {
  const { status, direction, q, from, to, tag } = query;
  const [after, before] = readAll(
    () => timeOf("after", query.after),
    () => timeOf("before", query.before),
  );
  return {
    ...(status === undefined ? {} : { status: status === "complaint" ? "complained" : status }),
    ...(direction === undefined ? {} : { direction }),
    ...(q === undefined ? {} : { q }),
    ...(from === undefined ? {} : { from: normalizeAddress(from) ?? from }),
    ...(to === undefined ? {} : { to: normalizeAddress(to) ?? to }),
    ...(tag === undefined ? {} : { tag: tagOf(tag) }),
    ...(after === undefined ? {} : { after }),
    ...(before === undefined ? {} : { before }),
  };
}

function tagOf(text: string): { name: string; value: string } {
  const colon = text.indexOf(":");
  return { name: text.slice(0, colon), value: text.slice(colon + 1) };
}

function timeOf(param: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const at = parseDay(text) ?? parseTime(text);
  if (at === null) throw invalid(param, DAY_OR_TIME_EXPECTED);
  return at;
}
