import { Type } from "@sinclair/typebox";
import { MAX_TOPICS, type TopicShape } from "../../../core/audience/topics.ts";
import { existing } from "../../../core/errors.ts";
import { listTopics, topicShapes } from "../../../store/audience/topics.ts";
import type { Db } from "../../../store/engine/client.ts";
import { getContact } from "../../../store/projects/contacts.ts";
import type { Route } from "../../routing/route.ts";
import { OneOf, showTime } from "../../routing/schemas.ts";
import { contactId } from "./contact-id.ts";
import { Given, Id, Part, ShortText } from "../form/given.ts";
import {
  ID_PAGE,
  listBody,
  type Operations,
  renamed,
  resendRoute,
  translated,
  withoutNulls,
} from "../form/translate.ts";

const SUBSCRIPTIONS = ["opt_in", "opt_out"] as const;
/** A contact's choice about a topic. */
const Subscription = OneOf(SUBSCRIPTIONS);
export const TopicChoices = Type.Array(Type.Object({ id: Id, subscription: Subscription }), {
  maxItems: MAX_TOPICS,
});
const FIELDS = { name: Given(ShortText), description: Given(Part) };

/** Returns choices about topics under the names of `/v1`. */
export function choicesOf(given: readonly { id: string; subscription: string }[]): Record<string, string> {
  return Object.fromEntries(
    given.map(({ id, subscription }) => [id, subscription === "opt_in" ? "subscribed" : "unsubscribed"]),
  );
}

const subscriptionOf = (subscribed: boolean) => (subscribed ? "opt_in" : "opt_out");

interface Topic extends Pick<TopicShape, "id" | "name" | "description" | "defaultSubscribed"> {
  createdAt: string;
}

function showTopic({ id, name, description, defaultSubscribed, createdAt }: Topic) {
  return {
    id,
    name,
    description,
    default_subscription: subscriptionOf(defaultSubscribed),
    created_at: createdAt,
  };
}

/** Returns the routes of topics, and those of a contact's topics. */
export function topicRoutes(operations: Operations, db: Db): Route[] {
  const path = "/topics/:id";
  return [
    translated(operations, {
      method: "POST",
      path: "/topics",
      operation: "createTopic",
      summary: "Create a topic",
      body: Type.Object({ ...FIELDS, default_subscription: Given(Subscription) }),
      ask({ body }) {
        const { default_subscription: given, ...fields } = withoutNulls(body);
        const chosen = given === undefined ? {} : { defaultSubscribed: given === "opt_in" };
        return { body: { ...renamed(fields, { name: "name", description: "description" }), ...chosen } };
      },
      answer: ({ id }: Topic) => ({ object: "topic", id }),
    }),
    resendRoute(
      operations,
      { method: "GET", path: "/topics", operation: "listTopics", summary: "List topics" },
      async ({ senderId }) => {
        const topics = await listTopics(db, senderId ?? "", null, MAX_TOPICS);
        const shown = topics.map((topic) => showTopic({ ...topic, createdAt: showTime(topic.createdAt) }));
        return { status: 200, body: listBody(shown, false) };
      },
    ),
    translated(operations, {
      method: "GET",
      path,
      operation: "getTopic",
      summary: "Get a topic",
      answer: (topic: Topic) => ({ object: "topic", ...showTopic(topic) }),
    }),
    translated(operations, {
      method: "PATCH",
      path,
      operation: "updateTopic",
      summary: "Change a topic",
      body: Type.Object(FIELDS),
      ask: ({ params, body }) => ({
        params,
        body: renamed(withoutNulls(body), { name: "name", description: "description" }),
      }),
      answer: ({ id }: Topic) => ({ object: "topic", id }),
    }),
    translated(operations, {
      method: "DELETE",
      path,
      operation: "deleteTopic",
      summary: "Delete a topic",
      answer: (_: unknown, { params }) => ({ object: "topic", id: params.id, deleted: true }),
    }),
    ...ofContactRoutes(operations, db),
  ];
}

function ofContactRoutes(operations: Operations, db: Db): Route[] {
  const path = "/contacts/:contact/topics";
  const listing = {
    method: "GET",
    path,
    operation: "getContact",
    summary: "List a contact's topics",
    query: Type.Object(ID_PAGE),
  } as const;
  return [
    resendRoute(operations, listing, async (context) => {
      const owner = context.senderId ?? "";
      const contact = existing("contact", await getContact(db, owner, await contactId(db, context)));
      const topics = (await topicShapes(db, owner)).map(({ id, name, description, defaultSubscribed }) => {
        const choice = contact.topics[id];
        const subscribed = choice === undefined ? defaultSubscribed : choice === 1;
        return { id, name, description, subscription: subscriptionOf(subscribed) };
      });
      return { status: 200, body: listBody(topics, false) };
    }),
    translated(operations, {
      method: "PATCH",
      path,
      operation: "updateContact",
      summary: "Change a contact's topics",
      body: TopicChoices,
      ask: async (context) => ({
        params: { id: await contactId(db, context) },
        body: { topics: choicesOf(context.body) },
      }),
      answer: ({ id }: { id: string }) => ({ id }),
    }),
  ];
}
