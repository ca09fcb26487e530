import { AppError, type ErrorCode } from "../../core/errors.ts";
import { UNBOUND } from "../../core/key-bounds.ts";
import { DAY_MS, HOUR_MS, SECOND_MS } from "../../core/time/units.ts";
import { log } from "../../log.ts";
import { isBroken } from "../../store/engine/guards.ts";
import { getMessage } from "../../store/messages/messages.ts";
import { findShownProject } from "../../store/projects/projects.ts";
import {
  dueEffects,
  endEffect,
  postponeEffect,
  type RuleEffect,
  ruleFailed,
  ruleWorked,
} from "../../store/rules/rule-effects.ts";
import { getRule } from "../../store/rules/rules.ts";
import type { Sending } from "../accept/sending.ts";
import { checkedReply, type PlacedSend, type SendBy, sendOne } from "../threads/send-one.ts";
import { failing, forwardMessage } from "./forward.ts";

/** Effects that are carried out in one turn. */
export const EFFECTS_PER_TURN = 100;
/** Pause before an effect is tried again that the service could not carry out, milliseconds. */
const RETRY_MS = 10 * SECOND_MS;
/** Pause before a forward is tried again for which the project has no room today, milliseconds. */
const NO_ROOM_MS = HOUR_MS;
/** Age at which an effect is given up, milliseconds. The daily quota begins again before that. */
const GIVE_UP_MS = DAY_MS + 2 * NO_ROOM_MS;

/**
 * Makes the chore that carries out what rules do with stored messages: replies and forwards. The new message and the end of its effect
 * are one write, so no crash loses or doubles one. Any number of processes may run it.
 */
export function carryOutRules(deps: Sending): () => Promise<void> {
  return async () => {
    const due = await dueEffects(deps.db, deps.clock.now(), EFFECTS_PER_TURN);
    await Promise.all(due.map((effect) => carryOut(deps, effect)));
  };
}

async function carryOut(deps: Sending, effect: RuleEffect): Promise<void> {
  try {
    const project = await findShownProject(deps.db, effect.senderId);
    if (project === null) return await end(deps, effect, "project_deleted");
    const by = { project, by: { keyId: null, bounds: UNBOUND }, now: deps.clock.now() };
    const { templateId } = effect;
    if (templateId === null) await forwardMessage(deps, effect, by);
    else await reply(deps, { ...effect, templateId }, by);
  } catch (error) {
    if (!isBroken(error, "changed_since_read")) await settleFailure(deps, effect, error);
  }
}

async function end({ db }: Sending, effect: RuleEffect, reason: string): Promise<void> {
  await db.write(endEffect(effect, { emailId: null, reason }));
}

async function reply(deps: Sending, effect: RuleEffect & { templateId: string }, by: SendBy): Promise<void> {
  const compose = await findReply(deps, effect, by);
  if (compose === null) return end(deps, effect, MESSAGE_GONE);
  await sendOne(deps, by, compose, ({ accepted }) => [
    ...endEffect(effect, { emailId: accepted.id, reason: null }),
    ruleWorked(effect.ruleId),
  ]);
}

/** Why a message is not answered whose conversation has been deleted since. */
export const MESSAGE_GONE = "message_gone";

/** Returns what composes the reply to a message with a template, as a program answers; null if its conversation is gone. */
export async function findReply(
  deps: Sending,
  { senderId, messageId, templateId }: Pick<RuleEffect, "senderId" | "messageId"> & { templateId: string },
  by: SendBy,
): Promise<(() => Promise<PlacedSend>) | null> {
  const message = await getMessage(deps.db, senderId, messageId);
  const threadId = message?.threadId ?? null;
  if (message === null || threadId === null) return null;
  const asked = {
    messageId,
    templateId,
    data: { from: message.from, subject: message.subject },
    headers: { "Auto-Submitted": "auto-replied" },
  };
  return () => checkedReply(deps, by, threadId, asked);
}

/** Returns why an effect was not carried out that was refused. */
export function reasonOf({ details, type }: AppError): string {
  return details.code ?? type;
}

/** Limits of the project that let it send again later. They are no failures of a rule. */
const NO_ROOM: ReadonlySet<ErrorCode | undefined> = new Set<ErrorCode>([
  "daily_quota_exceeded",
  "trust_tier_exceeded",
  "quota_exceeded",
  "sender_suspended",
]);

/**
 * Tries an effect again later if the service is busy, or if it is a forward and the project has no room. Else it is given up, and the
 * rule has failed unless a limit of the project or the thread was reached.
 */
async function settleFailure({ db, clock }: Sending, effect: RuleEffect, error: unknown): Promise<void> {
  const { messageId, senderId, ruleId, createdAt } = effect;
  const now = clock.now();
  const refusal = error instanceof AppError && error.type !== "service_unavailable" ? error : null;
  const hasNoRoom = refusal !== null && NO_ROOM.has(refusal.details.code);
  const waits = refusal === null || (hasNoRoom && effect.author === null);
  if (waits && now - createdAt < GIVE_UP_MS) {
    log("rules").warn("an effect of a rule is tried again", { messageId, ruleId, error: String(error) });
    await db.write([postponeEffect(effect, now + (hasNoRoom ? NO_ROOM_MS : RETRY_MS))]);
    return;
  }
  const words = refusal?.message ?? "The service failed.";
  log("rules").warn("an effect of a rule was given up", { messageId, ruleId, reason: words });
  const rule = await getRule(db, senderId, ruleId);
  const isLimited = hasNoRoom || refusal?.type === "rate_limited";
  const failure = rule === null || isLimited ? [] : ruleFailed(failing(rule, now), words);
  const reason = refusal === null ? "internal_error" : reasonOf(refusal);
  await db.write([...endEffect(effect, { emailId: null, reason }), ...failure]);
}
