import { FORWARD_FIELDS } from "./forwarding.ts";
import { REPLY_FIELDS } from "./automatic-reply.ts";
import {
  type AskedRule,
  MAX_COMPARED_ADDRESSES,
  MAX_COMPARED_CHARS,
  type RuleMail,
  type RuleWhen,
} from "./rule.ts";

/** A condition of a rule, and whether a message meets it. */
export interface CheckedCondition {
  condition: keyof RuleWhen;
  met: boolean;
}

/** What became of a rule: its conditions in order, and whether the message meets them all. */
export interface CheckedRule {
  rule: AskedRule;
  matched: boolean;
  /** Up to the first that is not met. */
  conditions: CheckedCondition[];
}

/** Asks a message whose strings are in the form in which they are compared. */
type Test = (mail: RuleMail) => boolean;

/** A rule whose conditions are ready to be asked. */
interface ReadyRule {
  rule: AskedRule;
  tests: readonly (readonly [condition: keyof RuleWhen, test: Test])[];
}

/** The enabled rules of a project in order, and what they need of a message. */
export interface ReadyRules {
  rules: readonly ReadyRule[];
  /** True if one of them rejects or drops. */
  refuses: boolean;
  /** Names of the header fields that they ask for, in lower case. */
  headers: readonly string[];
}

/** Makes the rules of a project ready. */
export function readyRules(rules: readonly AskedRule[]): ReadyRules {
  const names = rules.flatMap(({ when, then }) => [
    ...(when.header === undefined ? [] : [when.header.name.toLowerCase()]),
    ...(then.replyTemplateId === undefined ? [] : REPLY_FIELDS),
    ...(then.forwardTo === undefined ? [] : FORWARD_FIELDS),
  ]);
  return {
    rules: rules.map(readyRule),
    refuses: rules.some(({ then }) => then.reject !== undefined || then.drop === true),
    headers: [...new Set(names)],
  };
}

/** Returns the form in which strings are compared: composed, without case. */
function folded(text: string): string {
  return text.slice(0, MAX_COMPARED_CHARS).normalize("NFC").toLowerCase();
}

/** Returns the test of a pattern: at the end if it begins with `*`, else anywhere. */
function pattern(given: string): (value: string) => boolean {
  const text = folded(given);
  if (!text.startsWith("*")) return (value) => value.includes(text);
  const suffix = text.slice(1);
  return (value) => value.endsWith(suffix);
}

/** The conditions in the order of their checks. Each makes a test of its value. */
const TESTS: { readonly [Name in keyof RuleWhen]-?: (value: NonNullable<RuleWhen[Name]>) => Test } = {
  from(value) {
    const matches = pattern(value);
    return ({ from }) => matches(from);
  },
  to(value) {
    const matches = pattern(value);
    return ({ to }) => to.some(matches);
  },
  subject(value) {
    const matches = pattern(value);
    return ({ subject }) => matches(subject);
  },
  header({ name, value }) {
    const key = name.toLowerCase();
    const matches = pattern(value ?? "");
    return ({ headers }) => {
      const found = headers[key];
      return found !== undefined && matches(found);
    };
  },
  hasAttachment: (value) => (mail) => mail.hasAttachment === value,
  largerThan: (value) => (mail) => mail.size > value,
  auth: (value) => (mail) => mail.authenticated === (value === "pass"),
  trust: (value) => (mail) => mail.trust === value,
  spamScoreAbove: (value) => (mail) => mail.spamScore !== null && mail.spamScore > value,
};
const CONDITIONS = Object.keys(TESTS) as (keyof RuleWhen)[];

function readyRule(rule: AskedRule): ReadyRule {
  return { rule, tests: CONDITIONS.flatMap((name) => testOf(rule.when, name)) };
}

function testOf<Name extends keyof RuleWhen>(when: RuleWhen, name: Name): ReadyRule["tests"] {
  const value = when[name];
  if (value === undefined) return [];
  const make = TESTS[name] as (value: RuleWhen[Name]) => Test;
  return [[name, make(value)]];
}

/** Returns a message with its strings in the form in which they are compared. */
function foldedMail(mail: RuleMail): RuleMail {
  return {
    ...mail,
    from: folded(mail.from),
    to: mail.to.slice(0, MAX_COMPARED_ADDRESSES).map(folded),
    subject: folded(mail.subject),
    headers: Object.fromEntries(Object.entries(mail.headers).map(([name, value]) => [name, folded(value)])),
  };
}

/** Asks the rules of an inbox in order, up to the one that ends them: it stops, rejects or drops. */
export function checkRules({ rules }: ReadyRules, inboxId: string | null, mail: RuleMail): CheckedRule[] {
  const compared = foldedMail(mail);
  const checked: CheckedRule[] = [];
  for (const ready of rules) {
    const { rule } = ready;
    if (rule.inboxId !== null && rule.inboxId !== inboxId) continue;
    const result = checkRule(ready, compared);
    checked.push(result);
    const { stop, reject, drop } = rule.then;
    if (result.matched && (stop === true || reject !== undefined || drop === true)) break;
  }
  return checked;
}

function checkRule({ rule, tests }: ReadyRule, mail: RuleMail): CheckedRule {
  const conditions: CheckedCondition[] = [];
  for (const [condition, test] of tests) {
    const met = test(mail);
    conditions.push({ condition, met });
    if (!met) return { rule, matched: false, conditions };
  }
  return { rule, matched: true, conditions };
}
