import { Type } from "@sinclair/typebox";
import { mailboxText } from "../../core/addresses.ts";
import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import { AppError, notFound } from "../../core/errors.ts";
import { type MessageRecord, readRecord, type RecordDeps } from "../../flows/read/record.ts";
import { listSentOrReceived } from "../../store/lists/sent-and-received.ts";
import type { Message } from "../../store/messages/messages.ts";
import { showTime } from "../routing/schemas.ts";
import type { Route } from "../routing/route.ts";
import { MAX_BATCH } from "../routes/emails/emails.ts";
import { inTheirWords } from "./form/field-names.ts";
import { Given } from "./form/given.ts";
import { timeOf } from "./scheduled-words.ts";
import { ScheduledAt, SendBody, sendItemOf } from "./send-body.ts";
import { listRoute, type Operations, resendRoute, translated } from "./form/translate.ts";

/** Returns the routes of `/resend/emails` for sent messages. */
export function emailRoutes(operations: Operations, deps: RecordDeps): Route[] {
  return [
    translated(operations, {
      method: "POST",
      path: "/emails",
      operation: "sendEmail",
      summary: "Send a message",
      body: SendBody,
      byteLists: true,
      ask: async ({ body, now }) => ({ body: await sendItemOf(body, now) }),
      answer: ({ id }: WithId) => ({ id }),
    }),
    batchRoute(operations),
    listRoute(operations, {
      path: "/emails",
      operation: "listEmails",
      summary: "List sent messages",
      read: ({ senderId }, place, take) => listSentOrReceived(deps.db, senderId, "sent", place, take),
      show: (messages) =>
        messages.map((message) => ({ ...showFacts(message), last_event: lastEvent(message) })),
    }),
    getRoute(operations, deps),
    translated(operations, {
      method: "PATCH",
      path: "/emails/:id",
      operation: "rescheduleEmail",
      summary: "Reschedule",
      body: Type.Object({ scheduled_at: Given(ScheduledAt) }),
      ask: async ({ params, body: { scheduled_at: at }, now }) => ({
        params,
        body: at == null ? {} : { scheduledAt: await timeOf(at, now) },
      }),
      answer: ({ id }: WithId) => ({ object: "email", id }),
    }),
    translated(operations, {
      method: "POST",
      path: "/emails/:id/cancel",
      operation: "cancelEmail",
      summary: "Cancel",
      answer: ({ id }: WithId) => ({ object: "email", id }),
    }),
  ];
}

interface WithId {
  id: string;
}

interface BatchResult {
  data: { id?: string; error?: { message: string; param?: string } }[];
}

function batchRoute(operations: Operations): Route {
  return translated(operations, {
    method: "POST",
    path: "/emails/batch",
    operation: "sendEmailBatch",
    summary: "Send up to 100 messages",
    byteLists: true,
    body: Type.Array(SendBody, {
      minItems: 1,
      maxItems: MAX_BATCH,
      expected: `a list of 1 to ${MAX_BATCH} messages`,
    }),
    async ask({ body, request, now }) {
      const emails: unknown[] = [];
      for (const [index, item] of body.entries()) {
        emails.push(
          await sendItemOf(item, now).catch((error: unknown) => Promise.reject(ofItem(error, index))),
        );
        // The words of a hundred times take a tenth of a second, so other requests are served in between.
        await yieldToEventLoop();
      }
      return { body: { emails, strict: !isPermissive(request.headers) } };
    },
    answer({ data }: BatchResult, { request }) {
      const sent = data.flatMap(({ id }) => (id === undefined ? [] : [{ id }]));
      if (!isPermissive(request.headers)) return { data: sent };
      const errors = data.flatMap(({ error }, index) =>
        error === undefined ? [] : [{ index, message: inTheirWords(error.message, error.param) }],
      );
      return { data: sent, errors };
    },
  });
}

/** Returns an error of one message as the refusal of the whole batch. */
function ofItem(error: unknown, index: number): unknown {
  if (!(error instanceof AppError)) return error;
  const message = `Message ${index} is refused, so none was accepted. ${error.message}`;
  return new AppError(error.type, message, error.details);
}

function isPermissive(headers: Headers): boolean {
  return headers.get("x-batch-validation")?.toLowerCase() === "permissive";
}

function getRoute(operations: Operations, deps: RecordDeps): Route {
  const route = { method: "GET", path: "/emails/:id", operation: "getEmail" } as const;
  return resendRoute(
    operations,
    { ...route, summary: "Get a sent message" },
    async ({ senderId, params, expectAnswer }) => {
      const record = await readRecord(deps, senderId ?? "", params.id ?? "", { expect: expectAnswer });
      if (record === null || record.message.direction !== "outbound") throw notFound("email");
      return { status: 200, body: showEmail(record) };
    },
  );
}

/** Returns the fields that lists and records of sent messages share. */
function showFacts(message: Message): Record<string, unknown> {
  return {
    id: message.id,
    message_id: message.rfcMessageId ?? "",
    from: mailboxText(message.from),
    to: message.to.map(mailboxText),
    cc: message.cc.map(mailboxText),
    bcc: message.bcc.map(mailboxText),
    reply_to: message.replyTo.map(mailboxText),
    subject: message.subject,
    created_at: showTime(message.createdAt),
    scheduled_at: showTime(message.scheduledAt),
    topic_id: null,
  };
}

function showEmail(record: MessageRecord): Record<string, unknown> {
  const { message, content } = record;
  return {
    object: "email",
    ...showFacts(message),
    html: content.html,
    text: content.text,
    tags: message.tags,
    last_event: lastEvent(message, record),
  };
}

/** Resend's word for each status. */
const LAST_EVENT: Partial<Readonly<Record<Message["status"], string>>> = {
  accepted: "scheduled",
  sending: "queued",
  rejected: "suppressed",
  rendering_failure: "failed",
};

/** Returns Resend's `last_event`. Opens, clicks and cancellations are known only with the record. */
function lastEvent({ status }: Message, record?: Pick<MessageRecord, "events" | "recipients">): string {
  const types = new Set(record?.events.map(({ type }) => type));
  if (status === "delivered" && types.has("click")) return "clicked";
  if (status === "delivered" && types.has("open")) return "opened";
  const reasons = record?.recipients.map(({ reason }) => reason) ?? [];
  if (status === "failed" && reasons.includes("canceled")) return "canceled";
  if (status === "rejected" && reasons.length > 0 && !reasons.some(isListReason)) return "failed";
  return LAST_EVENT[status] ?? status;
}

function isListReason(reason: string | null): boolean {
  return reason === "suppressed" || reason === "unsubscribed";
}
