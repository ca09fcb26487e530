import { addressKey } from "../../core/addresses.ts";
import { AppError, invalid } from "../../core/errors.ts";
import { allowsRecipient, type KeyBounds } from "../../core/key-bounds.ts";
import type { CheckedSend } from "../../core/messages/send-rules.ts";
import type { Addressee } from "../../core/messages/send-item.ts";
import type { Project } from "../../store/projects/projects.ts";
import { ownerEmail } from "../../store/messages/sending.ts";
import { topicShapes } from "../../store/audience/topics.ts";
import { variablesOfTemplate } from "../../store/projects/templates.ts";
import { onboardingDomain } from "../../core/own-names.ts";
import { simulatedName } from "../deliver/simulator.ts";
import type { Sending } from "./sending.ts";

/** The fields of a send that policy checks. */
export interface PolicySubject {
  send: CheckedSend;
  fromDomain: string;
  /** True if the From domain is the project's own and verified. */
  verified: boolean;
  /** True if the message never leaves this machine. Then it may be from any address. */
  captured: boolean;
  /** True if test mode does not limit the message to the owner. */
  toAnyone: boolean;
  addressees: readonly Addressee[];
  /** The bounds of the key that sends. */
  bounds: KeyBounds;
}

/**
 * Checks whether the project may send this message. Each step throws its refusal.
 * @returns the variables of its template
 * @throws AppError 403 `sender_suspended`, `recipient_not_allowed`, `domain_not_verified`, `test_mode_recipient`; 422
 *   `template_not_found`
 */
export async function applyPolicy(
  deps: Sending,
  project: Project,
  subject: PolicySubject,
): Promise<readonly string[]> {
  refuseSuspended(project);
  refuseRecipients(subject);
  if (!subject.captured) await refuseFrom(deps, project, subject);
  await refuseTopic(deps, project, subject.send);
  return templateOf(deps, project, subject.send);
}

async function refuseTopic(
  { db }: Sending,
  { id }: Project,
  { item: { topicId } }: CheckedSend,
): Promise<void> {
  if (topicId === undefined) return;
  const known = (await topicShapes(db, id)).some((topic) => topic.id === topicId);
  if (!known) throw invalid("topicId", "must be the id of a topic of this project.");
}

function refuseSuspended(project: Project): void {
  if (project.suspendedAt === null) return;
  throw new AppError("permission_error", "Sending is suspended for this project.", {
    code: "sender_suspended",
  });
}

function refuseRecipients({ addressees, bounds }: PolicySubject): void {
  requireAllowed(bounds, addressees);
}

/**
 * Refuses recipients that a key may not send to. A key that approves or reschedules a message counts as sending it.
 * @throws AppError 403 `recipient_not_allowed`
 */
export function requireAllowed(
  bounds: KeyBounds,
  addressees: readonly Pick<Addressee, "email" | "kind">[],
): void {
  const refused = addressees.find(({ email }) => !allowsRecipient(bounds, addressKey(email)));
  if (refused === undefined) return;
  throw new AppError(
    "permission_error",
    `This key may not send to ${refused.email}. It may send to ${bounds.allowRecipients?.join(", ")}.`,
    { code: "recipient_not_allowed", param: refused.kind },
  );
}

async function refuseFrom(deps: Sending, project: Project, subject: PolicySubject): Promise<void> {
  if (subject.fromDomain === onboardingDomain(deps.serviceDomain)) {
    if (!subject.toAnyone) await refuseStrangersInTestMode(deps, project, subject.addressees);
  } else refuseUnverifiedDomain(subject);
}

function refuseUnverifiedDomain({ fromDomain, verified }: PolicySubject): void {
  if (verified) return;
  throw new AppError(
    "permission_error",
    `The domain ${fromDomain} is not a verified domain of this project. Add it with POST /v1/domains, and verify it.`,
    { code: "domain_not_verified", param: "from.email" },
  );
}

/** In test mode, the shared onboarding domain reaches only the account's owner and the simulator. */
async function refuseStrangersInTestMode(
  deps: Sending,
  project: Project,
  addressees: readonly Addressee[],
): Promise<void> {
  const owner = addressKey((await ownerEmail(deps.db, project.accountId)) ?? "");
  const stranger = addressees.find(
    ({ email, key }) => key !== owner && simulatedName(email, deps.serviceDomain) === null,
  );
  if (stranger === undefined) return;
  throw new AppError(
    "permission_error",
    "From the onboarding domain only the account owner's address and the simulator can be sent to. Verify your own domain to send to others, or change the owner with PATCH /v1/account.",
    {
      code: "test_mode_recipient",
      param: stranger.kind,
    },
  );
}

/** Returns the variables of the send's template; none if it has no template. */
async function templateOf(
  { db }: Sending,
  project: Project,
  { item: { templateId } }: CheckedSend,
): Promise<readonly string[]> {
  if (templateId === undefined) return [];
  const variables = await variablesOfTemplate(db, project.id, templateId);
  if (variables !== null) return variables;
  throw invalid("templateId", "must be the id or slug of a template of this project.", "template_not_found");
}
