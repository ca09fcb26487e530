import { MAX_LABELS } from "../messages/mailbox.ts";
import type { CheckedRule } from "./match.ts";
import { addressKey } from "../addresses.ts";
import { MAX_FORWARDS, type NotForwarded, whyNotForwarded } from "./forwarding.ts";
import { mayBeAnswered } from "./automatic-reply.ts";
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
  /** The rule that answers it, with a template. Null: none does, or a program must not answer the message. */
  reply: { ruleId: string; templateId: string } | null;
  /** The rules that forward it, each to another address. */
  forwards: readonly { ruleId: string; to: string }[];
  /** Why those rules do not forward it; null if they do. */
  unforwarded: NotForwarded | null;
  /** Null: the message is stored. */
  refusal: { how: "reject"; text: string } | { how: "drop" } | null;
  applied: AppliedRule[];
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
  unforwarded: null,
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
  const forwards = forwardsOf(matching);
  return {
    labels: [...new Set(matching.flatMap(({ then }) => then.labels ?? []))].slice(0, MAX_LABELS),
    assigneeId: last("assigneeId"),
    folder,
    archive: matching.some(({ then }) => then.archive === true),
    markRead: matching.some(({ then }) => then.markRead === true),
    reply: mayBeAnswered(mail) ? replyOf(matching) : null,
    forwards,
    unforwarded: forwards.length === 0 ? null : whyNotForwarded(mail, isSpam),
    refusal:
      reject === undefined ? (drop === true ? { how: "drop" } : null) : { how: "reject", text: reject },
    applied: matching.map(({ id, name }) => ({ id, name })),
  };
}

function replyOf(matching: readonly AskedRule[]): Ruling["reply"] {
  const rule = matching.findLast(({ then }) => then.replyTemplateId !== undefined);
  const templateId = rule?.then.replyTemplateId;
  return rule === undefined || templateId === undefined ? null : { ruleId: rule.id, templateId };
}

/** Returns the first rule for each address. */
function forwardsOf(matching: readonly AskedRule[]): { ruleId: string; to: string }[] {
  const byAddress = new Map<string, { ruleId: string; to: string }>();
  for (const { id: ruleId, then } of matching) {
    if (then.forwardTo === undefined) continue;
    const key = addressKey(then.forwardTo);
    if (!byAddress.has(key)) byAddress.set(key, { ruleId, to: then.forwardTo });
  }
  return [...byAddress.values()].slice(0, MAX_FORWARDS);
}
