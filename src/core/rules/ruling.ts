import { MAX_LABELS } from "../messages/mailbox.ts";
import type { CheckedRule } from "./match.ts";
import { addressKey } from "../addresses.ts";
import { MAX_FORWARDS, type NotForwarded, whyNotForwarded } from "./forwarding.ts";
import { type NotAnswered, whyNotAnswered } from "./automatic-reply.ts";
import type { AskedRule, RuleMail, RuleThen } from "./rule.ts";

/** A rule that a message met, as its record shows it. */
export interface AppliedRule {
  id: string;
  name: string;
}

/** The decision of an inbox's rules about a message. */
export interface Ruling {
  labels: readonly string[];
  /** Null: no rule assigns it. */
  assigneeId: string | null;
  /** Null: no rule moves it. */
  folder: NonNullable<RuleThen["folder"]> | null;
  archive: boolean;
  markRead: boolean;
  /** The rule that answers it with a template, or the reason why it does not. Null: no rule answers. */
  reply: { ruleId: string; templateId: string; reason: NotAnswered | null } | null;
  /** The rules that forward it, each to another address, or the reason why they do not. */
  forwards: readonly RuledForward[];
  /** Null: the message is stored. */
  refusal: { how: "reject"; text: string } | { how: "drop" } | null;
  applied: AppliedRule[];
}

/** A forward by a rule. */
export interface RuledForward {
  ruleId: string;
  to: string;
  /** Null: it is forwarded. */
  reason: NotForwarded | null;
}

/** The ruling if no rule matches. */
export const NO_RULING: Ruling = {
  labels: [],
  assigneeId: null,
  folder: null,
  archive: false,
  markRead: false,
  reply: null,
  forwards: [],
  refusal: null,
  applied: [],
};

/** Adds up what the matching rules do. The last one decides who gets the conversation, its folder and the reply. */
export function rulingOf(checked: readonly CheckedRule[], mail: RuleMail): Ruling {
  const matching = checked.filter(({ matched }) => matched).map(({ rule }) => rule);
  if (matching.length === 0) return NO_RULING;
  const { reject, drop } = matching.at(-1)?.then ?? {};
  const last = <Name extends keyof RuleThen>(name: Name) =>
    matching.findLast(({ then }) => then[name] !== undefined)?.then[name] ?? null;
  const folder = last("folder");
  const isSpam = folder === null ? mail.isSpam : folder === "spam";
  const isRefused = reject !== undefined || drop === true;
  return {
    labels: [...new Set(matching.flatMap(({ then }) => then.labels ?? []))].slice(0, MAX_LABELS),
    assigneeId: last("assigneeId"),
    folder,
    archive: matching.some(({ then }) => then.archive === true),
    markRead: matching.some(({ then }) => then.markRead === true),
    reply: isRefused ? null : replyOf(matching, mail),
    forwards: isRefused ? [] : forwardsOf(matching, whyNotForwarded(mail, isSpam)),
    refusal:
      reject === undefined ? (drop === true ? { how: "drop" } : null) : { how: "reject", text: reject },
    applied: matching.map(({ id, name }) => ({ id, name })),
  };
}

function replyOf(matching: readonly AskedRule[], mail: RuleMail): Ruling["reply"] {
  const rule = matching.findLast(({ then }) => then.replyTemplateId !== undefined);
  const templateId = rule?.then.replyTemplateId;
  if (rule === undefined || templateId === undefined) return null;
  return { ruleId: rule.id, templateId, reason: whyNotAnswered(mail) };
}

/** Returns the first rule for each address. */
function forwardsOf(matching: readonly AskedRule[], reason: NotForwarded | null): RuledForward[] {
  const byAddress = new Map<string, RuledForward>();
  for (const { id: ruleId, then } of matching) {
    if (then.forwardTo === undefined) continue;
    const key = addressKey(then.forwardTo);
    if (!byAddress.has(key)) byAddress.set(key, { ruleId, to: then.forwardTo, reason });
  }
  return [...byAddress.values()].slice(0, MAX_FORWARDS);
}
