import { type Static, Type } from "@sinclair/typebox";
import { AppError, type Issue, notFound, validationError } from "../../core/errors.ts";
import { SendItem } from "../../core/send-item.ts";
import { type CheckedSend, checkSend, type SendLimits } from "../../core/send-rules.ts";
import { turn } from "../../core/turn.ts";
import { check } from "../../core/validation.ts";
import { readRecord } from "../../flows/read/record.ts";
import {
  type AcceptDeps,
  commitSend,
  commitSends,
  type PreparedSend,
  prepareSend,
  sending,
} from "../../flows/send/accept.ts";
import type { NamedThreads } from "../../flows/send/join-thread.ts";
import type { Sender } from "../../store/senders.ts";
import { logAccepted } from "../access-log.ts";
import { type Answer, accepted, multiStatus, ok } from "../answer.ts";
import { type CheckedRequest, projectRoute, type Route } from "../route.ts";
import { OneOf, Timestamp } from "../schemas.ts";
import { MessageView, showMessage } from "../views/message.ts";
import { emailAttemptsRoute } from "./email-attempts.ts";
import { type EmailBytesDeps, emailBytesRoutes } from "./email-bytes.ts";
import { emailListRoute } from "./email-list.ts";
import { emailScheduleRoutes } from "./email-schedule.ts";

export interface EmailRouteDeps extends AcceptDeps, EmailBytesDeps {
  limits: SendLimits;
}

/** Items of a batch at most. */
export const MAX_BATCH = 100;

const BATCH_BOUNDS = { minItems: 1, maxItems: MAX_BATCH };
/** A batch as the reference shows it, and as far as it is refused whole. */
const Batch = Type.Object({ emails: Type.Array(SendItem, BATCH_BOUNDS) });
const BatchEnvelope = Type.Object({ emails: Type.Array(Type.Unknown(), BATCH_BOUNDS) });

const ACCEPTED_STATUS = OneOf(["accepted", "queued", "rejected"]);
const Accepted = Type.Object(
  {
    id: Type.String(),
    status: ACCEPTED_STATUS,
    scheduledAt: Type.Optional(Timestamp),
  },
  { title: "AcceptedMessage" },
);

const BatchResult = Type.Object({
  data: Type.Array(
    Type.Object({
      id: Type.Optional(Type.String({ description: "Present when the item was accepted." })),
      status: Type.Optional(ACCEPTED_STATUS),
      scheduledAt: Type.Optional(Timestamp),
      error: Type.Optional(
        Type.Object({
          message: Type.String(),
          code: Type.String(),
          param: Type.String({ description: "Empty where no one field is at fault." }),
          type: Type.Optional(Type.String()),
          resetAt: Type.Optional(Timestamp),
        }),
      ),
    }),
    { description: "One result an item, in their order." },
  ),
});

/** The routes of `/v1/emails`. */
export function emailRoutes(deps: EmailRouteDeps): Route[] {
  return [
    sendRoute(deps),
    batchRoute(deps),
    emailListRoute(deps),
    getRoute(deps),
    emailAttemptsRoute(deps),
    ...emailScheduleRoutes(deps),
    ...emailBytesRoutes(deps),
  ];
}

function sendRoute(deps: EmailRouteDeps): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/emails",
    operationId: "sendEmail",
    scope: "emails:send",
    summary: "Send a message",
    body: SendItem,
    bodyCheckedBy: "handler",
    answers: { 202: Accepted },
    errors: ["conflict"],
    async handle({ body, now, project, record, requestId }) {
      const send = checkedSend(body, deps.limits, now);
      return sending(async () => {
        const prepared = await prepareSend(deps, project, send);
        const answer = accepted(prepared.accepted);
        await commitSend(deps, project, prepared, record(answer));
        logAccepted(requestId, [prepared.accepted.id]);
        return answer;
      });
    },
  });
}

function batchRoute(deps: EmailRouteDeps): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/emails/batch",
    operationId: "sendEmailBatch",
    scope: "emails:send",
    summary: "Send up to 100 messages, each accepted or refused on its own",
    body: Batch,
    bodyCheckedBy: "handler",
    answers: { 207: BatchResult },
    errors: ["conflict"],
    handle: (context) => sending(() => sendBatch(deps, context)),
  });
}

type BatchContext = Pick<CheckedRequest, "body" | "now" | "record" | "requestId"> & { project: Sender };

async function sendBatch(
  deps: EmailRouteDeps,
  { body, now, project, record, requestId }: BatchContext,
): Promise<Answer> {
  const items: (PreparedSend | AppError)[] = [];
  const named: NamedThreads = new Map();
  for (const item of itemsOf(body)) {
    items.push(await prepareItem(deps, project, item, { now, named }));
    // A hundred mails to fifty recipients each take a second: others are served in between.
    await turn();
  }
  const answerFor = (refused: ReadonlyMap<PreparedSend, AppError>) =>
    multiStatus({ data: items.map((item) => showItem(item, refused)) });
  const good = items.flatMap((item) => (item instanceof AppError ? [] : [item]));
  const refused = await commitSends(deps, project, good, (over) => record(answerFor(over)));
  const taken = good.filter((item) => !refused.has(item));
  logAccepted(
    requestId,
    taken.map((item) => item.accepted.id),
  );
  return answerFor(refused);
}

/** The items of a batch, each still to be checked on its own: a bad one must not refuse the others. */
function itemsOf(body: unknown): unknown[] {
  const issues = check(BatchEnvelope, body);
  if (issues.length > 0) throw validationError(issues);
  return (body as Static<typeof BatchEnvelope>).emails;
}

/** An item ready to be committed, or what refuses it. */
async function prepareItem(
  deps: EmailRouteDeps,
  project: Sender,
  item: unknown,
  { now, named }: { now: number; named: NamedThreads },
): Promise<PreparedSend | AppError> {
  try {
    return await prepareSend(deps, project, checkedSend(item, deps.limits, now), { named });
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}

function showItem(
  item: PreparedSend | AppError,
  refused: ReadonlyMap<PreparedSend, AppError>,
): Record<string, unknown> {
  if (item instanceof AppError) return showRefusal(item);
  const refusal = refused.get(item);
  return refusal === undefined ? { ...item.accepted } : showRefusal(refusal);
}

function showRefusal({
  message,
  type,
  details: { code, param = "", resetAt },
}: AppError): Record<string, unknown> {
  return { error: { message, code: code ?? type, param, type, resetAt } };
}

/** The send in a body that keeps all rules, as `checkSend` knows them. Throws 422 with every issue. */
export function checkedSend(body: unknown, limits: SendLimits, now: number, ownHeaders = 0): CheckedSend {
  const result = checkSend(body, limits, now, ownHeaders);
  if (isIssues(result)) throw validationError(result);
  return result;
}

function isIssues(result: CheckedSend | Issue[]): result is Issue[] {
  return Array.isArray(result);
}

function getRoute(deps: EmailRouteDeps): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/emails/:id",
    operationId: "getEmail",
    scope: "emails:read",
    summary: "Read a message with its body and its events",
    answers: { 200: MessageView },
    errors: ["not_found"],
    async handle({ senderId, params, expectAnswer }) {
      const record = await readRecord(deps, senderId, params.id, { expect: expectAnswer });
      if (record === null) throw notFound("message");
      return ok(showMessage(record));
    },
  });
}
