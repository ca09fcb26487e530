import type { Rule, RuleTrial } from "../api/types.ts";
import { sizeText } from "./amounts.ts";

type When = Rule["when"];
type Then = Rule["then"];

/** The names that a sentence has in the place of ids. */
export interface RuleNames {
  member: (id: string) => string;
  template: (id: string) => string;
}

type Words<Fields> = { readonly [Name in keyof Fields]-?: (value: NonNullable<Fields[Name]>) => string };

const CONDITIONS: Words<When> = {
  from: (value) => `the author ${patternText(value)}`,
  to: (value) => `a recipient ${patternText(value)}`,
  subject: (value) => `the subject ${patternText(value)}`,
  header: ({ name, value }) =>
    value === undefined
      ? `there is a header field ${name}`
      : `the header field ${name} ${patternText(value)}`,
  hasAttachment: (value) => (value ? "there is a file" : "there is no file"),
  largerThan: (value) => `it is larger than ${sizeText(value)}`,
  auth: (value) => `DMARC ${value === "pass" ? "proves" : "does not prove"} the author`,
  trust: (value) => `the sender has the trust “${value}”`,
  spamScoreAbove: (value) => `the spam score is above ${value}`,
};

function effects({ member, template }: RuleNames): Words<Then> {
  return {
    labels: (labels) => `add the label${labels.length === 1 ? "" : "s"} ${labels.map(quoted).join(", ")}`,
    assigneeId: (id) => `assign it to ${member(id)} unless somebody has it`,
    folder: (folder) => (folder === "inbox" ? "keep it out of spam" : `move it to ${folder}`),
    archive: () => "archive it",
    markRead: () => "mark it as read",
    forwardTo: (to) => `forward it to ${joined([to].flat())}`,
    replyTemplateId: (id) => `answer with the template ${quoted(template(id))}`,
    reject: (text) => `refuse it with 550 5.7.1 ${quoted(text)}`,
    drop: () => "accept it and keep only its header",
    stop: () => "skip all later rules",
  };
}

function quoted(text: string): string {
  return `“${text}”`;
}

function patternText(pattern: string): string {
  return pattern.startsWith("*") ? `ends with ${quoted(pattern.slice(1))}` : `contains ${quoted(pattern)}`;
}

/** Returns parts as one enumeration: `a, b and c`. */
export function joined(parts: readonly string[]): string {
  return parts.length < 2 ? parts.join() : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}

/** Returns the words of the fields that are given, in the order of the table. */
function wordsOf<Fields extends object>(words: Words<Fields>, fields: Fields): string[] {
  return (Object.keys(words) as (keyof Fields)[]).flatMap((name) => {
    const value = fields[name];
    return value === undefined || value === null ? [] : [words[name](value as NonNullable<typeof value>)];
  });
}

/** Returns what is done, as the end of a sentence; empty for nothing. */
function doesText(then: object, names: RuleNames): string {
  const given = Object.entries(then).filter(([, value]) => value !== false && !isEmptyList(value));
  return joined(wordsOf<Then>(effects(names), Object.fromEntries(given)));
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

/** Returns one condition of a rule in words; its name if the rule has been changed and has no such condition any more. */
export function conditionText(when: When, name: string): string {
  const value = (when as Readonly<Record<string, unknown>>)[name];
  const words = (CONDITIONS as Readonly<Record<string, (value: never) => string>>)[name];
  return value === undefined || words === undefined ? name : words(value as never);
}

/** Returns what a rule does, as a sentence. */
export function ruleText({ when, then }: Pick<Rule, "when" | "then">, names: RuleNames): string {
  const conditions = wordsOf(CONDITIONS, when);
  const start = conditions.length === 0 ? "For every message:" : `If ${joined(conditions)}, then`;
  return `${start} ${doesText(then, names)}.`;
}

/** Why a rule does not send something. */
const REASONS: Readonly<Record<string, string>> = {
  automatic: "a program wrote it",
  bulk: "it was sent to many",
  unauthenticated: "its author is not proven",
  answered_today: "the rule has answered the author within a day",
  loop: "it was forwarded before, so it could go round for ever",
  spam: "it is taken for spam",
  already_forwarded: "the address gets it from another inbox",
  address_not_confirmed: "its owner has not confirmed the address",
  suppressed_recipient: "the address is suppressed",
  rate_limited: "the conversation takes no more answers now",
  content_gone: "its content is gone",
  message_gone: "its conversation is gone",
  rule_changed: "the rule has been changed since",
  rule_disabled: "the rule is disabled",
  template_not_found: "the template is gone",
  daily_quota_exceeded: "the project has no room today",
};

/** Returns why a rule does not send something; the code of a reason that has no words. */
function reasonText(reason: string): string {
  return REASONS[reason] ?? reason;
}

/** Returns what the rules would do to a message, as sentences. */
export function outcomeText(
  { reject, drop, reply, forwards, ...rest }: RuleTrial["outcome"],
  names: RuleNames,
): string {
  const does = doesText(
    reject === null && !drop
      ? {
          ...rest,
          forwardTo: forwards.filter(({ reason }) => reason === null).map(({ to }) => to),
          ...(reply?.reason === null ? { replyTemplateId: reply.templateId } : {}),
        }
      : { reject, drop },
    names,
  );
  const undone = [
    ...forwards.map(({ to, reason }) => [`forward it to ${to}`, reason] as const),
    ...(reply === null ? [] : [["answer it", reply.reason] as const]),
  ];
  return [
    does === "" ? "The rules would do nothing." : `The rules would ${does}.`,
    ...undone.flatMap(([what, reason]) =>
      reason === null ? [] : [`They would not ${what}, because ${reasonText(reason)}.`],
    ),
  ].join(" ");
}
