import { type Static, Type } from "@sinclair/typebox";
import { invalid } from "../../core/errors.ts";
import { MAX_REPLY_TO, MAX_SUBJECT_CHARS } from "../../core/messages/send-item.ts";
import { type Broadcast, listBroadcasts } from "../../store/audience/broadcasts.ts";
import { topicShapes } from "../../store/audience/topics.ts";
import type { Db } from "../../store/engine/client.ts";
import type { BroadcastView } from "../views/audience/broadcast.ts";
import type { Answer } from "../routing/answer.ts";
import type { CheckedRequest, Route } from "../routing/route.ts";
import { showTime } from "../routing/schemas.ts";
import { AddressText, Given, Id, Part, ShortText } from "./form/given.ts";
import {
  answeredBy,
  calledBefore,
  copyName,
  listRoute,
  type OperationRequest,
  type Operations,
  resendRoute,
  translated,
  withoutNulls,
} from "./form/translate.ts";
import { ScheduledAt } from "./send-body.ts";
import { timeOf } from "./scheduled-words.ts";
import { broadcastRecipientsRoute } from "./audience/broadcast-recipients.ts";
import { ALL } from "./audience/members.ts";
import { fromLiquid, toLiquid } from "./merge-tags.ts";

type Shown = Static<typeof BroadcastView>;

const FIELDS = {
  name: Given(ShortText),
  segment_id: Given(Id),
  /** The former name of `segment_id`. */
  audience_id: Given(Id),
  from: Given(AddressText),
  subject: Given(Type.String({ maxLength: MAX_SUBJECT_CHARS })),
  reply_to: Given(
    Type.Union([AddressText, Type.Array(AddressText, { maxItems: MAX_REPLY_TO })], {
      expected: "an address or a list of addresses",
    }),
  ),
  preview_text: Given(ShortText),
  html: Given(Part),
  text: Given(Part),
  topic_id: Given(Id),
};
const BroadcastFields = Type.Object(FIELDS);
type BroadcastFields = Static<typeof BroadcastFields>;
const CreateBroadcast = Type.Object({
  ...FIELDS,
  send: Given(Type.Boolean()),
  scheduled_at: Given(ScheduledAt),
});

/** Returns the routes of broadcasts. */
export function broadcastRoutes(operations: Operations, db: Db): Route[] {
  const path = "/broadcasts/:id";
  const done = ({ id }: Shown) => ({ object: "broadcast", id });
  return [
    createRoute(operations, db),
    listRoute(operations, {
      path: "/broadcasts",
      operation: "listBroadcasts",
      summary: "List broadcasts",
      read: ({ senderId }, place, take) => listBroadcasts(db, senderId, place, take),
      show: (broadcasts) => broadcasts.map(showListed),
    }),
    translated(operations, {
      method: "GET",
      path,
      operation: "getBroadcast",
      summary: "Get a broadcast",
      answer: showBroadcast,
    }),
    translated(operations, {
      method: "PATCH",
      path,
      operation: "updateBroadcast",
      summary: "Change a broadcast",
      body: BroadcastFields,
      ask: ({ params, body }) => ({ params, body: fieldsOf(body) }),
      answer: done,
    }),
    sendRoute(operations),
    broadcastRecipientsRoute(operations, db),
    translated(operations, {
      method: "POST",
      path: `${path}/duplicate`,
      operation: "createBroadcast",
      summary: "Copy a broadcast as a draft",
      ask: (context) => copyOf(operations, context),
      answer: done,
    }),
    translated(operations, {
      method: "POST",
      path: `${path}/cancel`,
      operation: "cancelBroadcast",
      summary: "Cancel a broadcast",
      answer: done,
    }),
    translated(operations, {
      method: "DELETE",
      path,
      operation: "deleteBroadcast",
      summary: "Delete a broadcast",
      answer: (_: unknown, { params }) => ({ object: "broadcast", id: params.id, deleted: true }),
    }),
  ];
}

function createRoute(operations: Operations, db: Db): Route {
  const route = {
    method: "POST",
    path: "/broadcasts",
    operation: "createBroadcast",
    summary: "Create a broadcast",
    body: CreateBroadcast,
  } as const;
  return resendRoute(operations, route, async (context) => {
    const { send, scheduled_at: words, topic_id: topicId, ...rest } = context.body;
    const fields: Record<string, unknown> = {
      name: context.body.subject || "Broadcast",
      ...fieldsOf(rest),
      topicId: topicId ?? (await onlyTopic(operations, db, context)),
      ...(words == null ? {} : { scheduledAt: await timeOf(words, context.now) }),
    };
    const request = { body: fields };
    if (send !== true) return answeredBy(operations, "createBroadcast", context, request, idOf);
    const { id } = await calledBefore<Shown>(operations, "createBroadcast", context, request);
    return sendDraft(operations, context, id);
  });
}

function sendRoute(operations: Operations): Route {
  const route = {
    method: "POST",
    path: "/broadcasts/:id/send",
    operation: "sendBroadcast",
    summary: "Send a broadcast",
    body: Type.Object({ scheduled_at: Given(ScheduledAt) }),
  } as const;
  return resendRoute(operations, route, async (context) => {
    const { id = "" } = context.params;
    const { scheduled_at: words } = context.body;
    if (words != null)
      await calledBefore(operations, "updateBroadcast", context, {
        params: { id },
        body: { scheduledAt: await timeOf(words, context.now) },
      });
    return sendDraft(operations, context, id);
  });
}

/** Fields that a copy does not take: when to send, and routes, which a key of the project may not choose. */
const NOT_COPIED = ["scheduledAt", "routeIds"];
/** Fields that a broadcast has of its template once it was sent. */
const CONTENT = ["html", "text"];

/** Returns the draft that has the fields of a broadcast which `/v1` takes. */
async function copyOf(operations: Operations, context: CheckedRequest): Promise<OperationRequest> {
  const request = { params: { ...context.params } };
  const shown = await calledBefore<Shown>(operations, "getBroadcast", context, request);
  const without = [...NOT_COPIED, ...(shown.templateId === null ? [] : CONTENT)];
  const taken = new Set(Object.keys(operations.get("createBroadcast")?.body?.properties ?? {}));
  const fields = Object.entries(withoutNulls(shown)).filter(
    ([name]) => taken.has(name) && !without.includes(name),
  );
  return { body: { ...Object.fromEntries(fields), name: copyName(shown.name) } };
}

/** Sends a draft, also if contacts lack values: Resend shows nothing there. */
function sendDraft(operations: Operations, context: CheckedRequest, id: string): Promise<Answer> {
  const request = { params: { id }, body: { allowMissing: true } };
  return answeredBy(operations, "sendBroadcast", context, request, idOf);
}

function idOf({ id }: Shown) {
  return { id };
}

/** The name of the topic of broadcasts that name none. */
const TOPIC_NAME = "Broadcasts";

/**
 * Returns the project's only topic. If it has none, makes one: a reader who leaves it gets no broadcast any more.
 * @throws AppError 422 if it has several
 */
async function onlyTopic(operations: Operations, db: Db, context: CheckedRequest): Promise<string> {
  const [topic, ...others] = await topicShapes(db, context.senderId ?? "");
  if (others.length > 0) throw invalid("topicId", "is required, because the project has several topics.");
  if (topic !== undefined) return topic.id;
  const request = { body: { name: TOPIC_NAME } };
  return (await calledBefore<{ id: string }>(operations, "createTopic", context, request)).id;
}

/** Returns the fields under the names of `/v1`. */
function fieldsOf(body: BroadcastFields): Record<string, unknown> {
  const { segment_id, audience_id, reply_to, preview_text, topic_id, subject, html, text, ...rest } =
    withoutNulls(body);
  const segmentId = segment_id ?? audience_id;
  const preview =
    preview_text === undefined ? "" : `${PREVIEW_BEGIN}${escapeHtml(preview_text)}${PREVIEW_END}`;
  return {
    ...rest,
    ...(segmentId === undefined ? {} : { segmentId: segmentId === ALL ? null : segmentId }),
    ...(reply_to === undefined ? {} : { replyTo: reply_to }),
    ...(topic_id === undefined ? {} : { topicId: topic_id }),
    ...(subject === undefined ? {} : { subject: toLiquid(subject) }),
    ...(html === undefined ? {} : { html: preview + toLiquid(html) }),
    ...(text === undefined ? {} : { text: toLiquid(text) }),
  };
}

/** The preview text, as an element that programs show in their lists and not in the message. */
const PREVIEW_BEGIN = '<div style="display:none">';
const PREVIEW_END = "</div>";
const PREVIEW = /^<div style="display:none">([^<]*)<\/div>/;

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

function unescapeHtml(html: string): string {
  return html.replaceAll("&lt;", "<").replaceAll("&amp;", "&");
}

const STATUSES: Readonly<Record<string, string>> = {
  scheduled: "queued",
  sending: "queued",
  paused: "queued",
};

function showListed(broadcast: Broadcast) {
  const { id, name, segmentId, status } = broadcast;
  return {
    id,
    name,
    segment_id: segmentId ?? ALL,
    audience_id: segmentId ?? ALL,
    status: STATUSES[status] ?? status,
    created_at: showTime(broadcast.createdAt),
    scheduled_at: showTime(broadcast.scheduledAt),
    sent_at: showTime(broadcast.startedAt),
  };
}

function showBroadcast(broadcast: Shown) {
  const { id, name, segmentId, status, from, replyTo, subject, html, text } = broadcast;
  const addressOf = ({ email, name: shown }: Shown["from"]) =>
    shown === undefined ? email : `${shown} <${email}>`;
  const preview = PREVIEW.exec(html ?? "");
  return {
    object: "broadcast",
    id,
    name,
    segment_id: segmentId ?? ALL,
    audience_id: segmentId ?? ALL,
    from: addressOf(from),
    subject: subject === null ? null : fromLiquid(subject),
    reply_to: replyTo.length === 0 ? null : replyTo.map(addressOf),
    preview_text: preview === null ? null : unescapeHtml(preview[1] ?? ""),
    status: STATUSES[status] ?? status,
    created_at: broadcast.createdAt,
    scheduled_at: broadcast.scheduledAt,
    sent_at: broadcast.startedAt,
    topic_id: broadcast.topicId,
    html: html === null ? null : fromLiquid(html.slice(preview?.[0].length ?? 0)),
    text: text === null ? null : fromLiquid(text),
  };
}
