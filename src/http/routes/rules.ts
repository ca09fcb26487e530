import { Type } from "@sinclair/typebox";
import { existing, notFound } from "../../core/errors.ts";
import { MAX_RULES } from "../../core/rules/rule.ts";
import type { Sending } from "../../flows/accept/sending.ts";
import { changeRule, createRule } from "../../flows/rules/save-rule.ts";
import { tryRules } from "../../flows/rules/try-rules.ts";
import { deleteRule, getRule, listRules, type Rule, rulePlace } from "../../store/rules/rules.ts";
import type { Db } from "../../store/engine/client.ts";
import { openDetails } from "../../store/notices/notices.ts";
import { exampleId } from "../openapi/examples.ts";
import { RULE_FIELDS, RuleView, showRule, showTrial, TrialView } from "../views/rule.ts";
import { created, noContent, ok } from "../routing/answer.ts";
import { projectRoute, type Route } from "../routing/route.ts";
import { PAGE_QUERY, PageOf } from "../routing/schemas.ts";

const CreateRule = Type.Object(
  {
    inboxId: Type.Optional(RULE_FIELDS.inboxId),
    position: Type.Optional(RULE_FIELDS.position),
    name: RULE_FIELDS.name,
    enabled: Type.Optional(RULE_FIELDS.enabled),
    when: RULE_FIELDS.when,
    then: RULE_FIELDS.then,
  },
  { title: "NewRule" },
);
const ChangeRule = Type.Partial(CreateRule, { title: "RuleChanges" });
/** Returns the routes of `/v1/rules`. */
export function ruleRoutes(deps: Sending): Route[] {
  return [...collectionRoutes(deps), ...itemRoutes(deps), tryRoute(deps)];
}

function collectionRoutes({ db }: Sending): Route[] {
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
      async handle({ project, body, now, record }) {
        const answer = (rule: Rule) => created(showRule(rule, null));
        return answer(await createRule(db, project, body, now, (rule) => record(answer(rule))));
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
        const rules = await listRules(db, senderId, after, take);
        const reasons = await disabledReasons(db, senderId, rules);
        return ok(answer(rules, (rule) => showRule(rule, reasons.get(rule.id) ?? null), rulePlace));
      },
    }),
  ];
}

function itemRoutes({ db }: Sending): Route[] {
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
        return shown(db, existing("rule", await getRule(db, senderId, params.id)));
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
      async handle({ project, params, body, now }) {
        return shown(db, await changeRule(db, project, params.id, body, now));
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
      async handle({ senderId, params, now }) {
        if (!(await deleteRule(db, senderId, params.id, now))) throw notFound("rule");
        return noContent();
      },
    }),
  ];
}

/** Returns why some of the rules were disabled, by id. */
function disabledReasons(db: Db, senderId: string, rules: readonly Rule[]) {
  const disabled = rules.filter(({ enabled }) => !enabled).map(({ id }) => id);
  return openDetails(db, senderId, "rule_disabled", disabled);
}

async function shown(db: Db, rule: Rule) {
  const reasons = await disabledReasons(db, rule.senderId, [rule]);
  return ok(showRule(rule, reasons.get(rule.id) ?? null));
}

function tryRoute(deps: Sending): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/rules/try",
    operationId: "tryRules",
    summary: "Show what the rules would do to a received message, and why",
    description:
      "Changes nothing. The rules read the message as it is stored. What they would send goes through all checks of a send.",
    scope: "emails:read",
    body: Type.Object(
      { emailId: Type.String({ description: "Id of a received message.", examples: [exampleId("msg")] }) },
      { title: "TryRules" },
    ),
    answers: { 200: TrialView },
    errors: ["not_found"],
    async handle({ project, body, now }) {
      const trial = await tryRules(deps, project, body.emailId, now);
      return ok(showTrial(body.emailId, existing("message", trial)));
    },
  });
}
