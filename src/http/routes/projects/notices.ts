import { type Static, Type } from "@sinclair/typebox";
import { existing } from "../../../core/errors.ts";
import { NOTICE_KINDS, NOTICE_LEVELS } from "../../../core/notices/kinds.ts";
import { shownNotice } from "../../../flows/notices/view.ts";
import { listNotices, setSeen } from "../../../store/notices/notices.ts";
import { ok } from "../../routing/answer.ts";
import type { Parts } from "../../routing/parts.ts";
import { accountRoute, type Route } from "../../routing/route.ts";
import { Nullable, OneOf, PAGE_QUERY, PageOf, Timestamp } from "../../routing/schemas.ts";

const NoticeSchema = Type.Object(
  {
    id: Type.String({ examples: ["ntc_01jv6m2k3n4p5q6r7s8t9v0w1x"] }),
    at: Timestamp,
    kind: OneOf(NOTICE_KINDS),
    level: OneOf(
      NOTICE_LEVELS,
      "`fail`: something does not work. `warn`: something soon will not. `info`: for your information.",
    ),
    subject: Type.String({ description: "Name of what it is about.", examples: ["example.com"] }),
    message: Type.String({ description: "What is the matter, in a sentence." }),
    fix: Type.Object(
      { label: Type.String(), path: Type.String({ examples: ["/domains/dom_01jv6m2k3n4p5q6r7s8t9v0w1x"] }) },
      {
        description: "A link to what needs someone: a path in the dashboard, with the project that it opens.",
      },
    ),
    senderId: Nullable(Type.String({ description: "The project. Null: the account." })),
    seenAt: Nullable(Timestamp),
    endedAt: Nullable(Type.String({ ...Timestamp, description: "When it was over. Null: it still is so." })),
  },
  { title: "Notice" },
);

const NoticeQuery = Type.Object({
  ...PAGE_QUERY,
  seen: Type.Optional(
    Type.Boolean({
      description:
        "True: only notices that were seen. False: only those that someone still has to see. One that is over is not among them, unless it happened once.",
      examples: [false],
    }),
  ),
  ended: Type.Optional(
    Type.Boolean({
      description: "True: only notices that are over. False: only those that are still so.",
      examples: [false],
    }),
  ),
});

const UpdateNotice = Type.Object(
  { seen: Type.Boolean({ description: "True once a person has seen it.", examples: [true] }) },
  { title: "NoticeChanges" },
);

/** Returns the routes of what the service tells people. */
export function noticeRoutes({ db }: Parts): Route[] {
  return [
    accountRoute({
      method: "GET",
      path: "/v1/notices",
      operationId: "listNotices",
      summary: "List what needs someone, newest first",
      description:
        "A notice says what fails or waits, since when, and where to fix it. A project's key sees those of its project, an account-wide key all of the account. They stay for 90 days after their end.",
      scope: "metrics:read",
      query: NoticeQuery,
      answers: { 200: PageOf(NoticeSchema) },
      async handle({ principal: { accountId, senderId }, query: { seen, ended }, page }) {
        const { after, take, answer } = page();
        const notices = await listNotices(db, accountId, { senderId, seen, ended }, after, take);
        return ok(answer(notices, shownNotice, ({ id }) => id));
      },
    }),
    accountRoute({
      method: "PATCH",
      path: "/v1/notices/:id",
      operationId: "updateNotice",
      summary: "Mark a notice as seen",
      description: "All who may see a notice share this mark. It ends nothing.",
      scope: "metrics:read",
      body: UpdateNotice,
      answers: { 200: NoticeSchema },
      errors: ["not_found"],
      async handle({ principal: { accountId, senderId }, params, body, now }) {
        const notice = await setSeen(db, accountId, senderId, params.id, body.seen ? now : null);
        return ok(shownNotice(existing("notice", notice)) satisfies Static<typeof NoticeSchema>);
      },
    }),
  ];
}
