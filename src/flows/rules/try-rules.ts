import { addressKey } from "../../core/addresses.ts";
import { AppError } from "../../core/errors.ts";
import { UNBOUND } from "../../core/key-bounds.ts";
import { type CheckedRule, checkRules } from "../../core/rules/match.ts";
import { type Ruling, rulingOf } from "../../core/rules/ruling.ts";
import { countFields, MAX_HEADER_OCTETS } from "../../mail/reading/raw-headers.ts";
import { contentRange } from "../../store/contents/content-read.ts";
import { largeReadBudget } from "../../store/contents/large-reads.ts";
import { getRaw } from "../../store/messages/message-content.ts";
import type { Message } from "../../store/messages/messages.ts";
import { erasedForm } from "../../store/projects/erased-addresses.ts";
import type { Project } from "../../store/projects/projects.ts";
import { type Forward, hasAnswered } from "../../store/rules/rule-effects.ts";
import { enabledRules, getRule } from "../../store/rules/rules.ts";
import { getInbox } from "../../store/threads/inboxes.ts";
import { checkSending, type SendCheck, SUPPRESSED } from "../accept/check.ts";
import type { Sending } from "../accept/sending.ts";
import { readRecord } from "../read/record.ts";
import { isAssignable } from "../threads/assignee.ts";
import type { SendBy } from "../threads/send-one.ts";
import { findForward } from "./forward.ts";
import { findReply, MESSAGE_GONE, reasonOf } from "./rule-effects.ts";
import { storedRuleMail } from "./rule-mail.ts";

/** Why a reply is not sent: the rule has answered the author within a day. */
const ANSWERED_TODAY = "answered_today";

/** The enabled rules with their conditions as a message on trial meets them, and what they would do to it. */
export interface Trial {
  checked: CheckedRule[];
  ruling: Omit<Ruling, "reply" | "forwards"> & { reply: TriedReply | null; forwards: TriedForward[] };
}

type TriedReply = Omit<NonNullable<Ruling["reply"]>, "reason"> & { reason: string | null };
type TriedForward = Omit<Ruling["forwards"][number], "reason"> & { reason: string | null };

/**
 * Returns what the enabled rules would do to a received message, by the steps that do it; null if the project has no such message.
 * Changes nothing.
 */
export async function tryRules(
  deps: Sending,
  project: Project,
  emailId: string,
  now: number,
): Promise<Trial | null> {
  const { db } = deps;
  const record = await readRecord(deps, project.id, emailId, { mostEvents: 0 });
  if (record === null || record.message.direction !== "inbound") return null;
  const { inboxId } = record.message;
  const inbox = inboxId === null ? null : await getInbox(db, project.id, inboxId);
  const receivedFields = await countReceived(deps, project.id, emailId);
  const mail = storedRuleMail(record, { inboxAddress: inbox?.address ?? "", receivedFields });
  const checked = checkRules(await enabledRules(db, project.id), inboxId, mail);
  const ruling = rulingOf(checked, mail);
  const trying: Trying = {
    message: record.message,
    by: { project, by: { keyId: null, bounds: UNBOUND }, now },
  };
  const forwards = await Promise.all(
    ruling.forwards.map(async (forward) => ({
      ...forward,
      reason:
        forward.reason ?? sharedReason(record.forwards, forward) ?? (await tryForward(deps, trying, forward)),
    })),
  );
  const { reply, assigneeId } = ruling;
  const canHaveIt = assigneeId !== null && (await isAssignable(db, project, assigneeId));
  return {
    checked,
    ruling: {
      ...ruling,
      assigneeId: canHaveIt ? assigneeId : null,
      reply: reply && { ...reply, reason: reply.reason ?? (await tryReply(deps, trying, reply)) },
      forwards,
    },
  };
}

/** A message on trial, and the one in whose name rules send. */
interface Trying {
  message: Message;
  by: SendBy;
}

async function countReceived(deps: Sending, senderId: string, id: string): Promise<number> {
  const raw = await getRaw(deps.db, senderId, id);
  if (raw === null) return 0;
  const end = Math.min(raw.content.size, MAX_HEADER_OCTETS);
  const budget = largeReadBudget(deps.memory.largeReads, senderId);
  return countFields(await contentRange(deps, raw.content, 0, end, budget), "received");
}

/** Returns the reason if another inbox has forwarded the message when it arrived. */
function sharedReason(stored: readonly Forward[], { ruleId }: TriedForward): string | null {
  const found = stored.some((one) => one.ruleId === ruleId && one.reason === "already_forwarded");
  return found ? "already_forwarded" : null;
}

async function tryForward(
  deps: Sending,
  { message: { senderId, id }, by }: Trying,
  { ruleId }: Pick<TriedForward, "ruleId">,
): Promise<string | null> {
  const rule = await getRule(deps.db, senderId, ruleId);
  const found = await findForward(deps, { senderId, messageId: id }, rule);
  if (typeof found === "string") return found;
  const { send, viaDomain } = found;
  return whyNotSent(await checkSending(deps, by.project, by.by, send, { viaDomain }));
}

async function tryReply(
  deps: Sending,
  { message: { senderId, id, from }, by }: Trying,
  { ruleId, templateId }: Pick<TriedReply, "ruleId" | "templateId">,
): Promise<string | null> {
  const author = await erasedForm(deps.db, senderId, addressKey(from.email));
  if (await hasAnswered(deps.db, { ruleId, author, messageId: id }, by.now)) return ANSWERED_TODAY;
  const compose = await findReply(deps, { senderId, messageId: id, templateId }, by);
  if (compose === null) return MESSAGE_GONE;
  try {
    const { send } = await compose();
    return whyNotSent(await checkSending(deps, by.project, by.by, send));
  } catch (error) {
    if (error instanceof AppError) return reasonOf(error);
    throw error;
  }
}

function whyNotSent({ error, findings }: SendCheck): string | null {
  if (error !== null) return reasonOf(error);
  return findings.some(({ code }) => code === SUPPRESSED) ? SUPPRESSED : null;
}
