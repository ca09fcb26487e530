import { type Static, Type } from "@sinclair/typebox";
import { MAX_TOPICS } from "../../../core/audience/topics.ts";
import { existing, notFound } from "../../../core/errors.ts";
import { changeTopic, createTopic } from "../../../flows/audience/topics.ts";
import { getTopic, listTopics, markTopic, type Topic } from "../../../store/audience/topics.ts";
import type { Store } from "../../../store/engine/client.ts";
import { created, noContent, ok } from "../../routing/answer.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import {
  MAX_NAME_CHARS,
  NOT_BLANK,
  ONE_LINE,
  PAGE_QUERY,
  PageOf,
  showTime,
  Timestamp,
} from "../../routing/schemas.ts";

/** Maximum characters of a topic's description. */
const MAX_DESCRIPTION_CHARS = 500;

const FIELDS = {
  name: Type.String({
    minLength: 1,
    maxLength: MAX_NAME_CHARS,
    ...NOT_BLANK,
    description: "As readers see it.",
    examples: ["Product news"],
  }),
  description: Type.Optional(
    Type.String({
      maxLength: MAX_DESCRIPTION_CHARS,
      ...ONE_LINE,
      description: "As readers see it below the name.",
      examples: ["Once a month"],
    }),
  ),
  defaultSubscribed: Type.Optional(
    Type.Boolean({
      default: true,
      description: "Whether addresses get it that have not chosen. Default: true, unless `doubleOptIn` is.",
    }),
  ),
  visible: Type.Optional(
    Type.Boolean({
      default: true,
      description: "Whether the page of unsubscribe links shows it. Default: true.",
    }),
  ),
  doubleOptIn: Type.Optional(
    Type.Boolean({
      default: false,
      description:
        "Whether people join it only by a mailed link. Then `defaultSubscribed` is false. Contacts that have joined before stay. Default: false.",
    }),
  ),
};
const CreateTopic = Type.Object(FIELDS, { title: "NewTopic" });
const TopicView = Type.Object(
  {
    id: Type.String(),
    name: FIELDS.name,
    description: Type.String({ examples: ["Once a month"] }),
    defaultSubscribed: Type.Boolean(),
    visible: Type.Boolean(),
    doubleOptIn: Type.Boolean(),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { title: "Topic" },
);

function showTopic({ senderId: _, createdAt, updatedAt, ...topic }: Topic): Static<typeof TopicView> {
  return { ...topic, createdAt: showTime(createdAt), updatedAt: showTime(updatedAt) };
}

/** Returns the routes of `/v1/topics`. */
export function topicRoutes({ db }: Pick<Store, "db">): Route[] {
  return [
    projectRoute({
      method: "POST",
      path: "/v1/topics",
      operationId: "createTopic",
      stores: {},
      summary: "Create a topic, which readers can leave without leaving the rest",
      description: `A send with \`topicId\` reaches only those who get the topic, and its unsubscribe link leaves it. A project has at most ${MAX_TOPICS}.`,
      scope: "audience:write",
      body: CreateTopic,
      answers: { 201: TopicView },
      async handle({ senderId, body, now, record }) {
        const answer = (topic: Topic) => created(showTopic(topic));
        return answer(await createTopic(db, senderId, body, now, (topic) => record(answer(topic))));
      },
    }),
    projectRoute({
      method: "GET",
      path: "/v1/topics",
      operationId: "listTopics",
      summary: "List topics, newest first",
      description: "Those that were deleted are left out at once.",
      scope: "audience:read",
      query: Type.Object(PAGE_QUERY),
      answers: { 200: PageOf(TopicView) },
      async handle({ senderId, page }) {
        const { after, take, answer } = page();
        return ok(answer(await listTopics(db, senderId, after, take), showTopic, ({ id }) => id));
      },
    }),
    ...itemRoutes({ db }),
  ];
}

function itemRoutes({ db }: Pick<Store, "db">): Route[] {
  const path = "/v1/topics/:id";
  return [
    projectRoute({
      method: "GET",
      path,
      operationId: "getTopic",
      summary: "Get a topic",
      description: "With what readers see of it.",
      scope: "audience:read",
      answers: { 200: TopicView },
      async handle({ senderId, params }) {
        return ok(showTopic(existing("topic", await getTopic(db, senderId, params.id))));
      },
    }),
    projectRoute({
      method: "PATCH",
      path,
      operationId: "updateTopic",
      stores: {},
      summary: "Change a topic",
      description:
        "Fields that are absent stay as they are. A change of `defaultSubscribed` counts for all who have not chosen.",
      scope: "audience:write",
      body: Type.Partial(CreateTopic, { title: "TopicChanges" }),
      answers: { 200: TopicView },
      async handle({ senderId, params, body, now }) {
        return ok(showTopic(await changeTopic(db, { senderId, id: params.id }, body, now)));
      },
    }),
    projectRoute({
      method: "DELETE",
      path,
      operationId: "deleteTopic",
      summary: "Delete a topic and what contacts have chosen about it",
      description:
        "Its messages that have not left yet are rejected. The choices are removed from the contacts within some minutes.",
      scope: "audience:write",
      answers: { 204: null },
      async handle({ senderId, params, now }) {
        if (!(await markTopic(db, senderId, params.id, now))) throw notFound("topic");
        return noContent();
      },
    }),
  ];
}
