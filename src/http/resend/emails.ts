import { Type } from "@sinclair/typebox";
import { mailboxText } from "../../core/addresses.ts";
import { AppError, invalid, notFound } from "../../core/errors.ts";
import { parseTime } from "../../core/time/date-times.ts";
import { type MessageRecord, type RecordDeps, readRecord } from "../../flows/read/record.ts";
import { getMessage, type Message } from "../../store/messages/messages.ts";
import { showTime } from "../routing/schemas.ts";
import type { CheckedRequest, Route } from "../routing/route.ts";
import { MAX_BATCH } from "../routes/emails/emails.ts";
import { mailboxTexts } from "./shapes.ts";
import {
  fieldsOf,
  ID_PAGE,
  type Operations,
  refuseFields,
  renamed,
  resendRoute,
  translated,
  translatedList,
} from "./translate.ts";

const SEND_NAMES = {
  from: "from",
  to: "to",
  cc: "cc",
  bcc: "bcc",
  reply_to: "replyTo",
  subject: "subject",
  html: "html",
  text: "text",
  headers: "headers",
  tags: "tags",
} as const;

const ATTACHMENT_NAMES = {
  filename: "filename",
  content: "content",
  content_type: "contentType",
  content_id: "contentId",
} as const;

/** Names of the package's options. Its requests have others, and a send must not ignore its time. */
const OPTION_NAMES = { scheduledAt: "scheduled_at", replyTo: "reply_to", topicId: "topic_id" } as const;

/** Name of an attachment that has none. */
const UNNAMED = "attachment";

/** Returns the routes of `/resend/emails` for sent messages. */
export function emailRoutes(operations: Operations, deps: RecordDeps): Route[] {
  return [
    translated<{ id: string }>(operations, {
      ...{ method: "POST", path: "/emails", operation: "sendEmail", summary: "Send a message" },
      ask: async ({ body, now }) => ({ body: await sendItemOf(body, now) }),
      answer: ({ id }) => ({ id }),
    }),
    batchRoute(operations),
    translatedList<{ id: string }>(operations, {
      ...{ path: "/emails", operation: "listEmails", summary: "List sent messages" },
      query: Type.Object(ID_PAGE),
      ask: () => ({ query: { direction: "outbound" } }),
      show: ({ id }, context) => showListed(deps, context, id),
    }),
    getRoute(operations, deps),
    translated<{ id: string }>(operations, {
      ...{ method: "PATCH", path: "/emails/:id", operation: "rescheduleEmail", summary: "Reschedule" },
      ask: async ({ params, body, now }) => ({
        params,
        body: { scheduledAt: await timeOf(fieldsOf(body).scheduled_at, now) },
      }),
      answer: ({ id }) => ({ object: "email", id }),
    }),
    translated<{ id: string }>(operations, {
      ...{ method: "POST", path: "/emails/:id/cancel", operation: "cancelEmail", summary: "Cancel" },
      answer: ({ id }) => ({ object: "email", id }),
    }),
  ];
}

/** Returns a send item for the body of a send. */
async function sendItemOf(body: unknown, now: number): Promise<Record<string, unknown>> {
  const fields = withoutNulls(fieldsOf(body));
  for (const [option, name] of Object.entries(OPTION_NAMES))
    if (fields[option] !== undefined)
      throw new AppError("validation_error", `Use "${name}" in place of "${option}".`, { param: option });
  refuseFields(fields, { topic_id: "Postrider has no topics. Use unsubscribeLink of POST /v1/emails." });
  const { scheduled_at: scheduledAt, template, attachments } = fields;
  const { id: templateId, variables: data } = fieldsOf(template, "template");
  return {
    ...renamed(fields, SEND_NAMES),
    ...renamed({ templateId, data }, { templateId: "templateId", data: "data" }),
    ...(attachments === undefined ? {} : { attachments: attachmentsOf(attachments) }),
    ...(scheduledAt === undefined ? {} : { scheduledAt: await timeOf(scheduledAt, now) }),
  };
}

/** Returns the fields that are not null. In a send, null is the same as no value. */
function withoutNulls(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}

function attachmentsOf(attachments: unknown): unknown {
  if (!Array.isArray(attachments)) return attachments;
  return attachments.map((attachment, index) => {
    const fields = withoutNulls(fieldsOf(attachment, `attachments[${index}]`));
    if (fields.path !== undefined)
      throw invalid(
        `attachments[${index}].path`,
        "is not supported, because the service downloads nothing for a client. Send the file's bytes as content.",
        "invalid_attachment",
      );
    return { filename: UNNAMED, ...renamed(fields, ATTACHMENT_NAMES) };
  });
}

/**
 * Returns the ISO 8601 time of a text such as `in 1 min` or `tomorrow at 9am` (UTC). A value that is no text stays as it is.
 * @throws AppError 422 for a text without a time
 */
async function timeOf(text: unknown, now: number): Promise<unknown> {
  if (typeof text !== "string" || parseTime(text) !== null) return text;
  // Loaded when it is needed, because most processes never see such a text.
  const { parseDate } = await import("chrono-node/en");
  const at = parseDate(text, { instant: new Date(now), timezone: 0 }, { forwardDate: true });
  if (at === null)
    throw invalid(
      "scheduledAt",
      'must be an ISO 8601 time with a zone, such as "2026-01-31T09:30:00Z", or words such as "in 1 hour".',
    );
  return at.toISOString();
}

interface BatchResult {
  data: { id?: string; error?: { message: string } }[];
}

function batchRoute(operations: Operations): Route {
  return translated<BatchResult>(operations, {
    method: "POST",
    path: "/emails/batch",
    operation: "sendEmailBatch",
    summary: "Send up to 100 messages",
    async ask({ body, request, now }) {
      if (!Array.isArray(body) || body.length === 0 || body.length > MAX_BATCH)
        throw invalid("", `must be a list of 1 to ${MAX_BATCH} messages.`);
      const emails: unknown[] = [];
      for (const [index, item] of body.entries())
        emails.push(
          await sendItemOf(item, now).catch((error: unknown) => Promise.reject(ofItem(error, index))),
        );
      return { body: { emails, strict: !isPermissive(request.headers) } };
    },
    answer({ data }, { request }) {
      const sent = data.flatMap(({ id }) => (id === undefined ? [] : [{ id }]));
      if (!isPermissive(request.headers)) return { data: sent };
      const errors = data.flatMap(({ error }, index) =>
        error === undefined ? [] : [{ index, message: error.message }],
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
    cc: mailboxTexts(message.cc),
    bcc: mailboxTexts(message.bcc),
    reply_to: mailboxTexts(message.replyTo),
    subject: message.subject,
    created_at: showTime(message.createdAt),
    scheduled_at: showTime(message.scheduledAt),
    topic_id: null,
  };
}

async function showListed({ db }: RecordDeps, { senderId }: CheckedRequest, id: string): Promise<unknown> {
  const message = await getMessage(db, senderId ?? "", id);
  // Retention may have removed it since the list was read.
  if (message === null) throw notFound("email");
  return { ...showFacts(message), last_event: lastEvent(message) };
}

function showEmail(record: MessageRecord): Record<string, unknown> {
  const { message, content } = record;
  return {
    ...{ object: "email", ...showFacts(message) },
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
