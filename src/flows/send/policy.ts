import { addressKey } from "../../core/addresses.ts";
import { AppError, invalid } from "../../core/errors.ts";
import type { Addressee, CheckedSend } from "../../core/send-rules.ts";
import type { Db } from "../../store/engine/client.ts";
import type { Sender } from "../../store/senders.ts";
import { ownerEmail } from "../../store/sending.ts";
import { hasTemplate } from "../../store/templates.ts";
import { onboardingDomain } from "../own-names.ts";
import { simulatedName } from "./simulator.ts";

export interface PolicyDeps {
  db: Db;
  serviceDomain: string;
}

/** A send as policy sees it. */
export interface PolicySubject {
  send: CheckedSend;
  fromDomain: string;
  /** Whether the From domain is the project's own and verified. */
  verified: boolean;
  addressees: readonly Addressee[];
}

/**
 * Whether the project may send this message: each step throws the refusal.
 * @throws AppError 403 `sender_suspended`, `domain_not_verified`, `test_mode_recipient`; 422 `template_not_found`
 */
export async function applyPolicy(deps: PolicyDeps, project: Sender, subject: PolicySubject): Promise<void> {
  refuseSuspended(project);
  if (subject.fromDomain === onboardingDomain(deps.serviceDomain))
    await refuseStrangersInTestMode(deps, project, subject.addressees);
  else refuseUnverifiedDomain(subject);
  await refuseUnknownTemplate(deps, project, subject.send);
}

function refuseSuspended(project: Sender): void {
  if (project.suspendedAt === null) return;
  throw new AppError("permission_error", "Sending is suspended for this project.", {
    code: "sender_suspended",
  });
}

function refuseUnverifiedDomain({ fromDomain, verified }: PolicySubject): void {
  if (verified) return;
  throw new AppError(
    "permission_error",
    `The domain ${fromDomain} is not a verified domain of this project.`,
    { code: "domain_not_verified", param: "from.email" },
  );
}

/** Test mode: the shared onboarding domain reaches the account's owner and the simulator, nobody else. */
async function refuseStrangersInTestMode(
  deps: PolicyDeps,
  project: Sender,
  addressees: readonly Addressee[],
): Promise<void> {
  const owner = addressKey((await ownerEmail(deps.db, project.accountId)) ?? "");
  const stranger = addressees.find(
    ({ email, key }) => key !== owner && simulatedName(email, deps.serviceDomain) === null,
  );
  if (stranger === undefined) return;
  throw new AppError(
    "permission_error",
    "From the onboarding domain only the account owner's address can be sent to.",
    {
      code: "test_mode_recipient",
      param: stranger.kind,
    },
  );
}

async function refuseUnknownTemplate(deps: PolicyDeps, project: Sender, send: CheckedSend): Promise<void> {
  const { templateId } = send.item;
  if (templateId === undefined || (await hasTemplate(deps.db, project.id, templateId))) return;
  throw invalid("templateId", "The project has no such template.", "template_not_found");
}
