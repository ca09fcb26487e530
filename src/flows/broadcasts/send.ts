import { AppError, invalid } from "../../core/errors.ts";
import { isBlank } from "../../core/messages/send-rules.ts";
import { onboardingDomain } from "../../core/own-names.ts";
import {
  type Broadcast,
  changeBroadcast,
  releaseHeld,
  replaceBody,
} from "../../store/audience/broadcasts.ts";
import { getSegment } from "../../store/audience/segments.ts";
import { getTopic } from "../../store/audience/topics.ts";
import type { Db, Statement } from "../../store/engine/client.ts";
import { isBroken } from "../../store/engine/guards.ts";
import { retryOnConflict } from "../../store/engine/retry-on-conflict.ts";
import { HELD_FOR } from "../../store/messages/held-recipients.ts";
import { sendFacts } from "../../store/messages/sending.ts";
import type { Project } from "../../store/projects/projects.ts";
import { findTemplate } from "../../store/projects/templates.ts";
import type { SendingKey } from "../accept/accept.ts";
import type { Sending } from "../accept/sending.ts";
import { segmentFilter } from "../audience/segments.ts";
import { refusing } from "../projects/templates.ts";
import { changedMeanwhile, existingBroadcast, invalidState, type WholeBroadcast } from "./save.ts";

/** A request that acts on a broadcast. */
export interface Acting {
  project: Project;
  by: SendingKey;
  /** Milliseconds. */
  now: number;
}

type Record = (broadcast: WholeBroadcast) => readonly Statement[];

/**
 * Sends a draft now, or at its time. From then on its content, and the filter of its segment, stay as they are.
 * @param record returns statements for the same write
 * @throws AppError 404; 409 `invalid_state` unless it is a draft; 403 for a bounded key or an unverified domain; 422 for what it lacks
 */
export async function sendBroadcast(
  deps: Sending,
  { project, by, now }: Acting,
  id: string,
  record: Record,
): Promise<WholeBroadcast> {
  refuseBounded(by);
  const draft = await existingBroadcast(deps.db, project.id, id);
  if (draft.broadcast.status !== "draft")
    throw invalidState("Only a draft can be sent. This broadcast was sent already.");
  const { broadcast, body, variables, filter } = await readyToSend(deps, project, draft, now);
  const isLater = broadcast.scheduledAt !== null && broadcast.scheduledAt > now;
  const changes: Partial<Broadcast> = {
    status: isLater ? "scheduled" : "sending",
    subject: broadcast.subject,
    keyId: by.keyId,
    variables,
    filter,
    octets: Buffer.byteLength(body.html ?? "") + Buffer.byteLength(body.text ?? ""),
    nextAt: isLater ? broadcast.scheduledAt : now,
    ...(isLater ? {} : { startedAt: now }),
    updatedAt: now,
  };
  const sent = { broadcast: { ...broadcast, ...changes }, body };
  await deps.db
    .write([
      ...changeBroadcast(draft.broadcast, changes),
      replaceBody(draft.broadcast, body),
      ...record(sent),
    ])
    .catch(changedMeanwhile);
  return sent;
}

/** A key with bounds must not reach people by a broadcast that its sends could not. */
function refuseBounded({ bounds }: SendingKey): void {
  if (!bounds.approval && bounds.allowRecipients === null) return;
  throw new AppError("permission_error", "A key whose sends have bounds cannot send a broadcast.");
}

interface Ready extends WholeBroadcast {
  variables: string[];
  filter: Broadcast["filter"];
}

/** Returns a draft with the content that will be sent. Throws why it cannot be. */
async function readyToSend(
  deps: Sending,
  project: Project,
  { broadcast, body }: WholeBroadcast,
  now: number,
): Promise<Ready> {
  const { db, renderer } = deps;
  const { id: senderId } = project;
  if (project.suspendedAt !== null)
    throw new AppError("permission_error", "Sending is suspended for this project.", {
      code: "sender_suspended",
    });
  if ((await getTopic(db, senderId, broadcast.topicId)) === null)
    throw invalid("topicId", "was deleted. Choose another topic.");
  await requireVerified(deps, project, broadcast, now);
  const { segmentId } = broadcast;
  // Throws if the filter names what was deleted since.
  if (segmentId !== null) await segmentFilter(db, senderId, segmentId, now);
  const filter = segmentId === null ? null : ((await getSegment(db, senderId, segmentId))?.filter ?? null);
  const source = await sourceOf(db, senderId, { broadcast, body });
  const variables = await refusing(renderer.variables(senderId, source));
  const { subject, html, text } = source;
  return { broadcast: { ...broadcast, subject }, body: { html, text }, variables, filter };
}

/** Returns subject and bodies, those of the broadcast before those of its template. */
async function sourceOf(
  db: Db,
  senderId: string,
  { broadcast: { templateId, ...broadcast }, body }: WholeBroadcast,
) {
  const template = templateId === null ? null : await findTemplate(db, senderId, templateId);
  if (templateId !== null && template === null)
    throw invalid("templateId", "was deleted. Choose another template.", "template_not_found");
  const subject = broadcast.subject || template?.subject || "";
  const html = body.html || template?.html || null;
  const text = body.text || template?.text || null;
  if (subject.trim() === "") throw invalid("subject", "is required.", "missing_field");
  if (isBlank(html) && isBlank(text))
    throw invalid(
      "html",
      "is required, unless text is given. At least one of them must not be blank.",
      "missing_field",
    );
  return { subject, html, text };
}

async function requireVerified(
  { db, serviceDomain, capturesAnyFrom }: Sending,
  project: Project,
  { from }: Broadcast,
  now: number,
): Promise<void> {
  const domain = from.email.slice(from.email.lastIndexOf("@") + 1).toLowerCase();
  if (domain === onboardingDomain(serviceDomain))
    throw new AppError("permission_error", "A broadcast cannot be from the onboarding domain.", {
      code: "domain_not_verified",
      param: "from.email",
    });
  const question = { fromDomain: domain, inboxAddress: from.email, keys: [], unsubscribeLink: false };
  const { verified } = await sendFacts(db, project, question, now);
  if (verified || capturesAnyFrom) return;
  throw new AppError(
    "permission_error",
    `The domain ${domain} is not a verified domain of this project. Add it with POST /v1/domains, and verify it.`,
    { code: "domain_not_verified", param: "from.email" },
  );
}

/** The steps of a broadcast that was sent: the statuses that allow each, and the status that it leads to. */
const STEPS = {
  pause: { from: ["sending"], to: "paused", refusal: "Only a broadcast that is being sent can be paused." },
  resume: { from: ["paused"], to: "sending", refusal: "Only a paused broadcast can be resumed." },
  cancel: {
    from: ["scheduled", "sending", "paused"],
    to: "canceled",
    refusal: "Only a broadcast that is scheduled, being sent or paused can be canceled.",
  },
} as const;

/**
 * Pauses, resumes or cancels a broadcast. Messages that wait are held while it is paused, and `rejected` with the reason `canceled` at
 * their turn once it is canceled. Those that a worker has in progress still leave.
 * @throws AppError 404; 409 `invalid_state` if its status does not allow it
 */
export async function stepBroadcast(
  { db }: { db: Db },
  named: { senderId: string; id: string },
  step: keyof typeof STEPS,
  now: number,
  record: Record,
): Promise<WholeBroadcast> {
  const once = () => stepOnce(db, named, step, now, record);
  const stepped = await retryOnConflict(once, (error) => isBroken(error, "changed_since_read"));
  if (stepped === null) throw invalidState("The broadcast keeps changing. Read it again.");
  return stepped;
}

async function stepOnce(
  db: Db,
  { senderId, id }: { senderId: string; id: string },
  step: keyof typeof STEPS,
  now: number,
  record: Record,
): Promise<WholeBroadcast> {
  const { broadcast, body } = await existingBroadcast(db, senderId, id);
  const { from, to, refusal } = STEPS[step];
  if (!(from as readonly string[]).includes(broadcast.status)) throw invalidState(refusal);
  const changes: Partial<Broadcast> = {
    status: to,
    ...(step === "cancel" ? { endedAt: now } : {}),
    ...(step === "resume" ? { nextAt: now, problem: null } : {}),
    updatedAt: Math.max(now, broadcast.updatedAt + 1),
  };
  const changed = { broadcast: { ...broadcast, ...changes }, body };
  const released = step === "pause" ? [] : [releaseHeld(broadcast, HELD_FOR.paused, now)];
  await db.write([...changeBroadcast(broadcast, changes), ...released, ...record(changed)]);
  return changed;
}
