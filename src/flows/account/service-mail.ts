import { newId } from "../../core/ids.ts";
import { UNBOUND } from "../../core/key-bounds.ts";
import { checkSend } from "../../core/messages/send-rules.ts";
import { onboardingDomain } from "../../core/own-names.ts";
import type { Statement, Store } from "../../store/engine/client.ts";
import {
  NEW_PROJECT,
  oldestActiveProject,
  type Project,
  serviceProject,
} from "../../store/projects/projects.ts";
import { commitSends, prepareSend, sending } from "../accept/accept.ts";
import type { Sending } from "../accept/sending.ts";

/** The services that send the service's own mail. */
export interface Mailing extends Sending {
  publicUrl: string;
  /** True if no mail leaves this machine. */
  captures: boolean;
}

/** A message of the service to one person. */
export interface OwnMail {
  to: string;
  subject: string;
  text: string;
}

/** Returns the account's hidden project, which sends the service's own mail, and whose webhook gets notices. */
export async function hiddenProject({ db, clock }: Store, accountId: string): Promise<Project> {
  const now = clock.now();
  const project = await serviceProject(db, {
    ...NEW_PROJECT,
    id: newId("snd", now),
    accountId,
    externalId: "",
    name: "Postrider",
    plan: "unlimited",
    trustTier: "unlimited",
    trackOpens: false,
    trackClicks: false,
    textFromHtml: false,
    contentDays: 1,
    createdAt: now,
  });
  if (project === null) throw new Error(`the account ${accountId} has no hidden project`);
  return project;
}

/**
 * Returns the project that the service's own mail to people of an account is in. Usually it is the hidden one, because no key
 * may read a link to sign in. In capture mode it is the account's first that is not suspended, because the mail leaves no machine.
 */
export async function mailProject(deps: Mailing, accountId: string): Promise<Project> {
  const shown = deps.captures ? await oldestActiveProject(deps.db, accountId) : null;
  return shown ?? hiddenProject(deps, accountId);
}

/**
 * Sends the service's own messages in one write, whatever the limits of the project and of test mode.
 * @param record statements for the same write
 */
export async function sendOwnMail(
  deps: Mailing,
  project: Project,
  mails: readonly OwnMail[],
  record: readonly Statement[] = [],
): Promise<void> {
  const sends = mails.map((mail) => {
    const send = checkSend(itemFor(deps, mail), deps.limits, deps.clock.now());
    if (Array.isArray(send)) throw new Error(`the service's own message is wrong: ${JSON.stringify(send)}`);
    return send;
  });
  const by = { keyId: null, bounds: UNBOUND };
  const options = { toAnyone: true, captured: deps.captures };
  await sending(async () => {
    const prepared = [];
    for (const send of sends) prepared.push(await prepareSend(deps, project, by, send, options));
    const refused = await commitSends(deps, project, prepared, (over) => (over.size > 0 ? [] : record));
    for (const refusal of refused.values()) throw refusal;
  });
}

function itemFor({ serviceDomain }: Mailing, { to, subject, text }: OwnMail) {
  return {
    from: { email: `postrider@${onboardingDomain(serviceDomain)}`, name: "Postrider" },
    to: [{ email: to }],
    subject,
    text,
    // An answering machine must not answer (RFC 3834 §5).
    headers: { "Auto-Submitted": "auto-generated" },
  };
}
