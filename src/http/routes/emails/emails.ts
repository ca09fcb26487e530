import { type Static, Type } from "@sinclair/typebox";
import { AppError, invalid, validationError, existing } from "../../../core/errors.ts";
import { SendItem } from "../../../core/messages/send-item.ts";
import { yieldToEventLoop } from "../../../core/concurrency/event-loop.ts";
import { expectationOf } from "../../../core/expectations.ts";
import { check, isObject } from "../../../core/validation.ts";
import { invitationIn } from "../../../flows/read/invitations.ts";
import { extractsIn } from "../../../flows/read/extracts.ts";
import { readRecord } from "../../../flows/read/record.ts";
import { commitSends, type PreparedSend, prepareSend, sending } from "../../../flows/accept/accept.ts";
import type { NamedThreads } from "../../../flows/accept/join-thread.ts";
import type { Project } from "../../../store/projects/projects.ts";
import { logAccepted } from "../../pipeline/request-log.ts";
import { type Answer, multiStatus, ok } from "../../routing/answer.ts";
import { type CheckedRequest, type Principal, projectRoute, type Route } from "../../routing/route.ts";
import { ItemError, Timestamp, Warnings } from "../../routing/schemas.ts";
import { exampleId } from "../../openapi/examples.ts";
import { onboardingDomain, simulatorDomain } from "../../../core/own-names.ts";
import { MessageView, showMessage } from "../../views/message.ts";
import { emailApprovalRoutes } from "./email-approval.ts";
import { emailAttemptsRoute } from "./email-attempts.ts";
import { checkedSend } from "../../../core/messages/send-rules.ts";
import { showRefusal } from "./refusal.ts";
import { sendForRequest } from "./send-for-request.ts";
import { emailCheckRoute } from "./email-check.ts";
import { emailExplainRoute } from "./email-explain.ts";
import { emailBytesRoutes } from "./email-bytes.ts";
import { emailForwardRoute } from "./email-forward.ts";
import { emailReleaseRoute } from "./email-release.ts";
import { ACCEPTED_STATUS, AcceptedMessage } from "../../views/accepted.ts";
import { emailListRoute } from "./email-list.ts";
import { emailScheduleRoutes } from "./scheduled-sends.ts";
import { withWarnings } from "../../pipeline/warnings.ts";
import type { Parts } from "../../routing/parts.ts";

/** Maximum number of items in a batch. */
export const MAX_BATCH = 100;

const BATCH_BOUNDS = { minItems: 1, maxItems: MAX_BATCH };
const Strict = Type.Optional(
  Type.Boolean({
    default: false,
    description:
      "If true, either all items are accepted or none: the first bad item is the error of the whole request.",
  }),
);
/** A batch in the API document. The envelope is what is checked before the items. */
const Batch = Type.Object({ emails: Type.Array(SendItem, BATCH_BOUNDS), strict: Strict });
const BatchEnvelope = Type.Object({
  emails: Type.Array(Type.Unknown(), { ...BATCH_BOUNDS, examples: [SendItem.examples] }),
  strict: Strict,
});

const BatchResult = Type.Object({
  data: Type.Array(
    Type.Object({
      id: Type.Optional(Type.String({ description: "Present if the item was accepted." })),
      status: Type.Optional(ACCEPTED_STATUS),
      scheduledAt: Type.Optional(Timestamp),
      error: Type.Optional(ItemError),
      warnings: Warnings,
    }),
    { description: "One result per item, in the same order." },
  ),
});

/** Returns the routes of `/v1/emails`. */
export function emailRoutes(deps: Parts): Route[] {
  return [
    sendRoute(deps),
    batchRoute(deps),
    emailCheckRoute(deps),
    emailListRoute(deps),
    getRoute(deps),
    emailAttemptsRoute(deps),
    emailExplainRoute(deps),
    ...emailScheduleRoutes(deps),
    ...emailApprovalRoutes(deps),
    emailReleaseRoute(deps),
    emailForwardRoute(deps),
    ...emailBytesRoutes(deps),
  ];
}

/**
 * Returns a send item that needs no registered domain: from the onboarding domain to a simulated recipient.
 */
function exampleItem({ serviceDomain }: Parts): Static<typeof SendItem> {
  return {
    from: `Ana <hello@${onboardingDomain(serviceDomain)}>`,
    to: [`delivered@${simulatorDomain(serviceDomain)}`],
    subject: "Hello from Postrider",
    text: "It works.",
  };
}

const EXAMPLE_RESULT = { id: exampleId("msg"), status: "queued" };

function sendRoute(deps: Parts): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/emails",
    operationId: "sendEmail",
    stores: { limitedBy: "handler" },
    scope: "emails:send",
    summary: "Send a message",
    description:
      "Stores the message and answers at once. The body has `html`, `text` or `templateId`. The result is in the record, in events and at webhooks. With an `Idempotency-Key` a repeated request sends once.",
    examples: { body: exampleItem(deps), answer: EXAMPLE_RESULT },
    body: SendItem,
    bodyLimit: "message",
    bodyCheckedBy: "handler",
    answers: { 202: AcceptedMessage },
    errors: ["conflict"],
    async handle(context) {
      const send = checkedSend(context.body, deps.limits, context.now);
      return sendForRequest(deps, context, async () => ({ send, place: null }), context);
    },
  });
}

function batchRoute(deps: Parts): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/emails/batch",
    operationId: "sendEmailBatch",
    stores: { limitedBy: "handler" },
    scope: "emails:send",
    summary: "Send up to 100 messages. Each succeeds or fails separately",
    description:
      "Counts as one request. Items that are wrong do not stop the others: each result has the `id` of its message or an `error`.",
    examples: {
      body: { emails: [exampleItem(deps), { ...exampleItem(deps), subject: "A second message" }] },
      answer: { data: [EXAMPLE_RESULT, EXAMPLE_RESULT] },
    },
    body: Batch,
    bodyLimit: "message",
    bodyCheckedBy: "handler",
    answers: { 207: BatchResult },
    errors: ["conflict"],
    handle: (context) => sending(() => sendBatch(deps, context)),
  });
}

type BatchContext = Pick<CheckedRequest, "body" | "now" | "record" | "requestId"> & {
  project: Project;
  principal: Principal;
};

async function sendBatch(
  deps: Parts,
  { body, now, project, principal, record, requestId }: BatchContext,
): Promise<Answer> {
  const { emails, strict = false } = envelopeOf(body);
  const items: (PreparedSend | AppError)[] = [];
  const named: NamedThreads = new Map();
  for (const item of emails) {
    const prepared = await prepareItem(deps, project, item, { now, named, principal });
    if (strict && prepared instanceof AppError) throw ofItem(prepared, items.length);
    items.push(prepared);
    // A hundred messages to fifty recipients each take a second, so other requests are served in between.
    await yieldToEventLoop();
  }
  const answerFor = (refused: ReadonlyMap<PreparedSend, AppError>) =>
    multiStatus({ data: items.map((item) => showItem(item, refused)) });
  const good = items.flatMap((item) => (item instanceof AppError ? [] : [item]));
  const refused = await commitSends(deps, project, good, (over) => {
    const [first] = over;
    if (strict && first !== undefined) throw ofItem(first[1], items.indexOf(first[0]));
    return record(answerFor(over));
  });
  const taken = good.filter((item) => !refused.has(item));
  logAccepted(
    requestId,
    taken.map((item) => item.accepted.id),
  );
  return answerFor(refused);
}

/** Returns a batch with unchecked items. Each is checked separately, so that a bad one does not refuse the others. */
function envelopeOf(body: unknown): Static<typeof BatchEnvelope> {
  const issues = check(BatchEnvelope, body);
  if (issues.length > 0) throw validationError(issues);
  return body as Static<typeof BatchEnvelope>;
}

/** Returns an item's error as the error of the whole batch: its `param` begins with the item. */
function ofItem({ type, message, details }: AppError, index: number): AppError {
  const { param = "" } = details;
  return new AppError(type, `Item ${index} is refused, so none was accepted. ${message}`, {
    ...details,
    param: `emails[${index}]${param === "" ? "" : `.${param}`}`,
  });
}

/** Returns an item that is ready to be committed, or the error that refuses it. */
async function prepareItem(
  deps: Parts,
  project: Project,
  item: unknown,
  { now, named, principal }: { now: number; named: NamedThreads; principal: Principal },
): Promise<PreparedSend | AppError> {
  try {
    if (!isObject(item)) throw invalid("", `The item must be ${expectationOf(SendItem)}.`, "invalid_item");
    return await prepareSend(deps, project, principal, checkedSend(item, deps.limits, now), { named });
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
  return refusal === undefined ? withWarnings(item.accepted, item.warnings) : showRefusal(refusal);
}

function getRoute(deps: Parts): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/emails/:id",
    operationId: "getEmail",
    inboxes: "message",
    scope: "emails:read",
    summary: "Get a message with its body and events",
    description:
      "`recipients` shows where each recipient stands, and `events` what happened. Received messages also have `envelope`, `auth` and `replyText`.",
    answers: { 200: MessageView },
    errors: ["not_found"],
    async handle({ senderId, params, expectAnswer }) {
      const record = existing(
        "message",
        await readRecord(deps, senderId, params.id, { expect: expectAnswer }),
      );
      const invitation = await invitationIn(deps, record);
      return ok(showMessage(record, { ...extractsIn(record, deps), invitation }));
    },
  });
}
