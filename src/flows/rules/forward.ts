import { addressKey } from "../../core/addresses.ts";
import { newId } from "../../core/ids.ts";
import type { ForwardedCopy } from "../../core/messages/forwarded.ts";
import type { ReadItem } from "../../core/messages/send-item.ts";
import type { CheckedSend } from "../../core/messages/send-rules.ts";
import { sharedAttachments } from "../../store/messages/attachments.ts";
import { forwardFacts, sharedContents } from "../../store/messages/message-content.ts";
import { getMessage, type Message } from "../../store/messages/messages.ts";
import { confirmedAddress } from "../../store/rules/forward-addresses.ts";
import {
  disableAfterBounces,
  endEffect,
  type Failing,
  type RuleEffect,
  ruleFailed,
  ruleWorked,
} from "../../store/rules/rule-effects.ts";
import { getRule, type Rule } from "../../store/rules/rules.ts";
import { getInbox } from "../../store/threads/inboxes.ts";
import { commitSend, prepareSend, sending } from "../accept/accept.ts";
import type { SendContent } from "../accept/content.ts";
import type { Sending } from "../accept/sending.ts";
import type { SendBy } from "../threads/send-one.ts";

// Mail programs and other services break DKIM if they forward as a new message, so teams miss forwarding that keeps it. Sending the
// message as an attachment (POST /v1/emails/{id}/forward) was there first: filters and ticket systems cannot read that.

/**
 * Forwards a received message as a rule says, to the address that its owner has confirmed: the octets as they came, below the trace
 * of their way here. If that cannot be, the effect ends with the reason.
 */
export async function forwardMessage(deps: Sending, effect: RuleEffect, by: SendBy): Promise<void> {
  const { db } = deps;
  const { senderId, ruleId } = effect;
  const rule = await getRule(db, senderId, ruleId);
  const found = await findForward(deps, effect, rule);
  if (typeof found === "string") {
    const failed =
      rule === null || found !== "address_not_confirmed"
        ? []
        : ruleFailed(failing(rule, by.now), UNCONFIRMED);
    await db.write([...endEffect(effect, { emailId: null, reason: found }), ...failed]);
    return;
  }
  const { send, viaDomain, content } = found;
  await sending(async () => {
    const prepared = await prepareSend(deps, by.project, by.by, send, { content, viaDomain });
    await commitSend(deps, by.project, prepared, [
      ...endEffect(effect, { emailId: prepared.accepted.id, reason: null }),
      ruleWorked(ruleId),
      // A suppressed address refuses it at once.
      ...(rule === null ? [] : disableAfterBounces(failing(rule, by.now))),
    ]);
  });
}

const UNCONFIRMED = "The address that it forwards to is not confirmed.";

/** Returns a rule as what may be disabled now. */
export function failing({ id: ruleId, senderId, name }: Rule, now: number): Failing {
  return { ruleId, senderId, name, noticeId: newId("ntc", now), now };
}

/** A message to forward. */
interface FoundForward {
  send: CheckedSend;
  /** The domain of its inbox. */
  viaDomain: string;
  content: SendContent;
}

/** Returns what to forward as a rule says, or why nothing is. */
export async function findForward(
  { db }: Sending,
  { senderId, messageId }: Pick<RuleEffect, "senderId" | "messageId">,
  rule: Rule | null,
): Promise<FoundForward | string> {
  const to = rule?.then.forwardTo;
  if (rule === null || to === undefined) return "rule_changed";
  if (!rule.enabled) return "rule_disabled";
  const [address, message, facts, contents] = await Promise.all([
    confirmedAddress(db, senderId, addressKey(to)),
    getMessage(db, senderId, messageId),
    forwardFacts(db, senderId, messageId),
    sharedContents(db, senderId, messageId),
  ]);
  if (address === null) return "address_not_confirmed";
  const inbox =
    message === null || message.inboxId === null ? null : await getInbox(db, senderId, message.inboxId);
  if (message === null || inbox === null) return "message_gone";
  const { body, whole } = contents ?? { body: null, whole: null };
  if (whole === null || facts === null) return "content_gone";
  const forward: ForwardedCopy = {
    emailId: messageId,
    ruleId: rule.id,
    inbox: inbox.address,
    trace: facts.trace,
    arc: facts.arc,
    named: [...message.to, ...message.cc].map(({ email }) => email),
  };
  const isUtf8 = /\bwith UTF8SMTPS?\b/.test(facts.trace);
  const envelope = {
    ...whole.envelope,
    rcptTo: [address.email],
    forward,
    ...(isUtf8 ? { smtpUtf8: true } : {}),
  };
  const content: SendContent = {
    mayWriteAhead: () => false,
    texts: async () => ({ html: null, text: null }),
    keep: async (_, __, now) => ({
      body,
      attachments: (await sharedAttachments(db, senderId, messageId)).map((file) => ({
        ...file,
        id: newId("att", now),
      })),
      size: message.size,
      whole: { raw: whole.raw, envelope, rfcMessageId: message.rfcMessageId },
    }),
  };
  const viaDomain = inbox.address.slice(inbox.address.lastIndexOf("@") + 1);
  return { send: { item: itemOf(message, address.email), scheduledAt: null }, viaDomain, content };
}

/** Returns the send: From stays the author's, and nothing is tracked. */
function itemOf({ from, replyTo, subject }: Message, to: string): ReadItem {
  return {
    from,
    to: [{ email: to }],
    replyTo,
    subject,
    stream: "transactional",
    tracking: { opens: false, clicks: false },
  };
}
