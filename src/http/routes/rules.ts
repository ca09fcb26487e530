import { type Static, Type } from "@sinclair/typebox";
import { existing, notFound } from "../../core/errors.ts";
import { type CheckedRule, checkRules } from "../../core/rules/match.ts";
import { MAX_POSITION, MAX_PATTERN_CHARS, MAX_REJECT_CHARS, MAX_RULES } from "../../core/rules/rule.ts";
import { rulingOf } from "../../core/rules/ruling.ts";
import { readRecord } from "../../flows/read/record.ts";
import { storedRuleMail } from "../../flows/rules/rule-mail.ts";
import { changeRule, createRule } from "../../flows/rules/save-rule.ts";
import {
  deleteRule,
  enabledRules,
  getRule,
  listRules,
  type Rule,
  rulePlace,
} from "../../store/rules/rules.ts";
import type { LargeContents } from "../../store/contents/large-reads.ts";
import { AppliedRuleView } from "../views/received.ts";
import { exampleId } from "../openapi/examples.ts";
import { created, noContent, ok } from "../routing/answer.ts";
import { projectRoute, type Route } from "../routing/route.ts";
import {
  MAX_NAME_CHARS,
  Nullable,
  ONE_LINE,
  OneOf,
  PAGE_QUERY,
  PageOf,
  showTime,
  Timestamp,
} from "../routing/schemas.ts";

const pattern = (description: string, example: string) =>
  Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_PATTERN_CHARS,
      ...ONE_LINE,
      description,
      examples: [example],
    }),
  );

const When = Type.Object(
  {
    from: pattern("The address in From.", "*@example.com"),
    to: pattern("An address in To or Cc, or a recipient of the SMTP transaction.", "sales@"),
    subject: pattern("The subject.", "invoice"),
    header: Type.Optional(
      Type.Object(
        {
          name: Type.String({
            pattern: "^[!-9;-~]{1,100}$",
            expected: "the name of a header field",
            examples: ["List-Id"],
          }),
          value: pattern("If left out, the field only has to be there.", "news.example.com"),
        },
        { description: "The first field of that name." },
      ),
    ),
    hasAttachment: Type.Optional(Type.Boolean()),
    largerThan: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_POSITION, description: "Bytes." })),
    auth: Type.Optional(OneOf(["pass", "fail"], "`pass`: DMARC proves the author. `fail`: it does not.")),
    spamScoreAbove: Type.Optional(
      Type.Number({
        minimum: -1000,
        maximum: 1000,
        examples: [8],
        description: "A message without a verdict of the spam filter does not match.",
      }),
    ),
  },
  {
    additionalProperties: false,
    title: "RuleConditions",
    description:
      "All must hold; none: every message. A string matches anywhere in the value, or at its end if it begins with `*`. Case does not count.",
    examples: [{ header: { name: "List-Id" } }],
  },
);

const Then = Type.Object(
  {
    archive: Type.Optional(Type.Boolean({ description: "Archives the conversation." })),
    markRead: Type.Optional(Type.Boolean({ description: "Marks the conversation as read." })),
    reject: Type.Optional(
      Type.String({
        pattern: `^[ -~]{1,${MAX_REJECT_CHARS}}$`,
        expected: `1 to ${MAX_REJECT_CHARS} printable ASCII characters`,
        examples: ["No advertising, please"],
        description: "Refuses the message with 550 5.7.1 and this text. Only its header is kept.",
      }),
    ),
    drop: Type.Optional(
      Type.Boolean({ description: "Accepts the message, and keeps only its header, as `inbound_rejected`." }),
    ),
    stop: Type.Optional(Type.Boolean({ description: "Skips all later rules." })),
  },
  {
    additionalProperties: false,
    title: "RuleActions",
    description: "At least one. `reject` and `drop` skip all later rules.",
    examples: [{ archive: true }],
  },
);

const FIELDS = {
  inboxId: Nullable(
    Type.String({ description: "Null: every inbox of the project.", examples: [exampleId("inb")] }),
  ),
  position: Type.Integer({
    minimum: 0,
    maximum: MAX_POSITION,
    description: "Rules apply in ascending order. A new rule without one is the last.",
  }),
  name: Type.String({ minLength: 1, maxLength: MAX_NAME_CHARS, ...ONE_LINE, examples: ["Newsletters"] }),
  enabled: Type.Boolean(),
  when: When,
  then: Then,
};
const CreateRule = Type.Object(
  {
    inboxId: Type.Optional(FIELDS.inboxId),
    position: Type.Optional(FIELDS.position),
    name: FIELDS.name,
    enabled: Type.Optional(FIELDS.enabled),
    when: FIELDS.when,
    then: FIELDS.then,
  },
  { title: "NewRule" },
);
const ChangeRule = Type.Partial(CreateRule, { title: "RuleChanges" });
const RuleView = Type.Object(
  { id: Type.String(), ...FIELDS, createdAt: Timestamp, updatedAt: Timestamp },
  { title: "Rule" },
);

function showRule({ senderId: _, createdAt, updatedAt, ...rule }: Rule): Static<typeof RuleView> {
  return { ...rule, createdAt: showTime(createdAt), updatedAt: showTime(updatedAt) };
}

const TrialView = Type.Object(
  {
    emailId: Type.String(),
    rules: Type.Array(
      Type.Object({
        ...AppliedRuleView.properties,
        matched: Type.Boolean(),
        conditions: Type.Array(
          Type.Object({
            condition: Type.String({ examples: ["from"] }),
            met: Type.Boolean(),
          }),
          { description: "In the order of their checks, up to the first that is not met." },
        ),
      }),
      { description: "The enabled rules of the message's inbox in order, up to the one that ends them." },
    ),
    outcome: Type.Object({
      archive: Type.Boolean(),
      markRead: Type.Boolean(),
      reject: Nullable(Type.String({ description: "The text of the refusal." })),
      drop: Type.Boolean(),
    }),
  },
  { title: "RuleTrial" },
);

function showTrial(emailId: string, checked: readonly CheckedRule[]): Static<typeof TrialView> {
  const { archive, markRead, refusal } = rulingOf(checked);
  return {
    emailId,
    rules: checked.map(({ rule: { id, name }, ...result }) => ({ id, name, ...result })),
    outcome: {
      archive,
      markRead,
      reject: refusal?.how === "reject" ? refusal.text : null,
      drop: refusal?.how === "drop",
    },
  };
}

/** Returns the routes of `/v1/rules`. */
export function ruleRoutes(deps: LargeContents): Route[] {
  return [...collectionRoutes(deps), ...itemRoutes(deps), tryRoute(deps)];
}

function collectionRoutes({ db }: LargeContents): Route[] {
  return [
    projectRoute({
      method: "POST",
      path: "/v1/rules",
      operationId: "createRule",
      stores: {},
      summary: "Create a rule for mail that arrives",
      description: `It applies to mail from now on. Mail to role mailboxes and simulated mail meet no rules. A project has at most ${MAX_RULES}.`,
      scope: "inboxes:write",
      examples: {
        body: { name: "Newsletters", when: { header: { name: "List-Id" } }, then: { archive: true } },
      },
      body: CreateRule,
      answers: { 201: RuleView },
      async handle({ senderId, body, now, record }) {
        const answer = (rule: Rule) => created(showRule(rule));
        return answer(await createRule(db, senderId, body, now, (rule) => record(answer(rule))));
      },
    }),
    projectRoute({
      method: "GET",
      path: "/v1/rules",
      operationId: "listRules",
      summary: "List rules in the order in which they apply",
      description: "The disabled ones too.",
      scope: "inboxes:read",
      query: Type.Object(PAGE_QUERY),
      answers: { 200: PageOf(RuleView) },
      async handle({ senderId, page }) {
        const { after, take, answer } = page();
        return ok(answer(await listRules(db, senderId, after, take), showRule, rulePlace));
      },
    }),
  ];
}

function itemRoutes({ db }: LargeContents): Route[] {
  return [
    projectRoute({
      method: "GET",
      path: "/v1/rules/:id",
      operationId: "getRule",
      summary: "Get a rule",
      description: "With its conditions and what it does.",
      scope: "inboxes:read",
      answers: { 200: RuleView },
      async handle({ senderId, params }) {
        return ok(showRule(existing("rule", await getRule(db, senderId, params.id))));
      },
    }),
    projectRoute({
      method: "PATCH",
      path: "/v1/rules/:id",
      operationId: "updateRule",
      shows: "inboxes:read",
      stores: {},
      summary: "Change a rule, its place, or turn it off",
      description: "Fields that are absent stay as they are. `when` and `then` are replaced as a whole.",
      scope: "inboxes:write",
      examples: { body: { enabled: false } },
      body: ChangeRule,
      answers: { 200: RuleView },
      async handle({ senderId, params, body, now }) {
        return ok(showRule(await changeRule(db, senderId, params.id, body, now)));
      },
    }),
    projectRoute({
      method: "DELETE",
      path: "/v1/rules/:id",
      operationId: "deleteRule",
      summary: "Delete a rule",
      description: "The records of messages that met it keep its name.",
      scope: "inboxes:write",
      answers: { 204: null },
      async handle({ senderId, params }) {
        if (!(await deleteRule(db, senderId, params.id))) throw notFound("rule");
        return noContent();
      },
    }),
  ];
}

function tryRoute(deps: LargeContents): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/rules/try",
    operationId: "tryRules",
    summary: "Show what the rules would do to a received message, and why",
    description: "Changes nothing. The rules read the message as it is stored.",
    scope: "emails:read",
    body: Type.Object(
      { emailId: Type.String({ description: "Id of a received message.", examples: [exampleId("msg")] }) },
      { title: "TryRules" },
    ),
    answers: { 200: TrialView },
    errors: ["not_found"],
    async handle({ senderId, body }) {
      const record = existing("message", await readRecord(deps, senderId, body.emailId));
      if (record.message.direction !== "inbound") throw notFound("message");
      const rules = await enabledRules(deps.db, senderId);
      return ok(showTrial(body.emailId, checkRules(rules, record.message.inboxId, storedRuleMail(record))));
    },
  });
}
