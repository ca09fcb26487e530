import { AppError } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import { UNBOUND } from "../../core/key-bounds.ts";
import { DAY_MS, MINUTE_MS } from "../../core/time/units.ts";
import { log } from "../../log.ts";
import { isBroken } from "../../store/engine/guards.ts";
import { getMessage } from "../../store/messages/messages.ts";
import { findShownProject } from "../../store/projects/projects.ts";
import {
  dueReplies,
  postponeReply,
  type RuleReply,
  ruleFailed,
  ruleWorked,
  settleReply,
} from "../../store/rules/rule-replies.ts";
import { getRule } from "../../store/rules/rules.ts";
import type { Sending } from "../accept/sending.ts";
import { checkedReply, sendOne } from "../threads/send-one.ts";

/** Replies that are sent in one turn. */
export const REPLIES_PER_TURN = 20;
/** Pause before a reply is tried again that the service could not take, milliseconds. */
const RETRY_MS = MINUTE_MS;
/** Age at which a reply is given up, milliseconds. */
const GIVE_UP_MS = DAY_MS;

/**
 * Makes the chore that sends the replies of rules. The message and its reply are one write, so no crash loses or doubles one. Any
 * number of processes may run it.
 */
export function sendRuleReplies(deps: Sending): () => Promise<void> {
  return async () => {
    for (const reply of await dueReplies(deps.db, deps.clock.now(), REPLIES_PER_TURN)) {
      try {
        await send(deps, reply);
      } catch (error) {
        if (!isBroken(error, "changed_since_read")) await settleFailure(deps, reply, error);
      }
    }
  };
}

async function send(deps: Sending, reply: RuleReply): Promise<void> {
  const { db, clock } = deps;
  const { senderId, messageId, ruleId, templateId } = reply;
  const message = await getMessage(db, senderId, messageId);
  const project = await findShownProject(db, senderId);
  const threadId = message?.threadId ?? null;
  // The message has been deleted since.
  if (project === null || threadId === null) return void (await db.write(settleReply(messageId)));
  const now = clock.now();
  const asked = {
    messageId,
    templateId,
    data: { from: message?.from ?? {}, subject: message?.subject ?? "" },
    headers: { "Auto-Submitted": "auto-replied" },
  };
  const by = { project, by: { keyId: null, bounds: UNBOUND }, now };
  const compose = () => checkedReply(deps, by, threadId, asked);
  await sendOne(deps, by, compose, () => [...settleReply(messageId), ruleWorked(ruleId)]);
}

/** Tries a reply again later if the service is busy. Else it is given up, and the rule has failed unless the limit of its thread was reached. */
async function settleFailure({ db, clock }: Sending, reply: RuleReply, error: unknown): Promise<void> {
  const { messageId, senderId, ruleId, createdAt } = reply;
  const now = clock.now();
  const isRefused = error instanceof AppError && error.type !== "service_unavailable";
  if (!isRefused && now - createdAt < GIVE_UP_MS) {
    log("rules").warn("a reply is tried again", { messageId, ruleId, error: String(error) });
    await db.write([postponeReply(messageId, now + RETRY_MS)]);
    return;
  }
  const reason = error instanceof AppError ? error.message : "The service failed.";
  log("rules").warn("a reply was given up", { messageId, ruleId, reason });
  const rule = await getRule(db, senderId, ruleId);
  const isLimited = error instanceof AppError && error.type === "rate_limited";
  const failure =
    rule === null || isLimited
      ? []
      : ruleFailed({ ruleId, senderId, name: rule.name }, { noticeId: newId("ntc", now), reason, now });
  await db.write([...settleReply(messageId), ...failure]);
}
