import { addressKey } from "../../core/addresses.ts";
import { existing, invalid } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import { MAX_RULES, type RuleThen, type RuleWhen } from "../../core/rules/rule.ts";
import { requireDistinct } from "../../core/messages/mailbox.ts";
import type { Project } from "../../store/projects/projects.ts";
import { requireAssignable } from "../threads/assignee.ts";
import type { Db, Statement } from "../../store/engine/client.ts";
import { tooManyRecords } from "../quotas.ts";
import { confirmedAddress } from "../../store/rules/forward-addresses.ts";
import { getRule, insertRule, nextPosition, type Rule, updateRule } from "../../store/rules/rules.ts";
import { findTemplate } from "../../store/projects/templates.ts";
import { getInbox } from "../../store/threads/inboxes.ts";

/** The project of a rule. */
export type RuleOwner = Pick<Project, "id" | "accountId">;

/** A rule as a client gives it. */
export interface RuleInput {
  inboxId?: string | null | undefined;
  position?: number | undefined;
  name: string;
  enabled?: boolean | undefined;
  when: RuleWhen;
  then: RuleThen;
}

/**
 * Creates a rule, after the others unless it has a position.
 * @throws AppError 404 if there is no such inbox; 422 if the rule does nothing or names no member; 403 if there are too many
 */
export async function createRule(
  db: Db,
  project: RuleOwner,
  input: RuleInput,
  now: number,
  record: (rule: Rule) => readonly Statement[],
): Promise<Rule> {
  const { inboxId = null, name, enabled = true, when, then } = input;
  const senderId = project.id;
  await requireSound(db, project, inboxId, then);
  const position = input.position ?? (await nextPosition(db, senderId));
  const times = { createdAt: now, updatedAt: now };
  const rule = { id: newId("rul", now), senderId, inboxId, position, name, enabled, when, then, ...times };
  await db
    .write([...insertRule(rule), ...record(rule)])
    .catch(tooManyRecords(`A project has at most ${MAX_RULES} rules.`, "rules"));
  return rule;
}

/**
 * Changes the given fields of a rule.
 * @throws AppError 404 if there is no such rule or inbox; 422 if the rule would do nothing, or names no member
 */
export async function changeRule(
  db: Db,
  project: RuleOwner,
  id: string,
  input: Partial<RuleInput>,
  now: number,
): Promise<Rule> {
  const senderId = project.id;
  const before = existing("rule", await getRule(db, senderId, id));
  const given = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
  const after = { ...before, ...given };
  await requireSound(db, project, after.inboxId, input.then ?? after.then, input.then !== undefined);
  return existing("rule", await updateRule(db, senderId, id, { ...given, updatedAt: now }));
}

async function requireSound(
  db: Db,
  project: RuleOwner,
  inboxId: string | null,
  then: RuleThen,
  isNew = true,
): Promise<void> {
  const does = Object.values(then).filter(
    (value) => value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0),
  );
  if (does.length === 0) throw invalid("then", "A rule needs at least one action.");
  if (then.reject !== undefined && then.drop === true)
    throw invalid("then.drop", "A message that is rejected cannot be dropped as well.");
  requireDistinct("then.labels", then.labels);
  // A member of an older rule may be gone. The rule can still be renamed or turned off.
  if (isNew && then.assigneeId !== undefined)
    await requireAssignable(db, project, then.assigneeId, "then.assigneeId");
  if (isNew && then.replyTemplateId !== undefined) {
    const template = await findTemplate(db, project.id, then.replyTemplateId);
    if (template === null)
      throw invalid("then.replyTemplateId", "must be the id or slug of a template.", "template_not_found");
  }
  if (isNew && then.forwardTo !== undefined) await requireConfirmed(db, project.id, then.forwardTo);
  if (inboxId !== null) existing("inbox", await getInbox(db, project.id, inboxId));
}

async function requireConfirmed(db: Db, senderId: string, to: string): Promise<void> {
  if ((await confirmedAddress(db, senderId, addressKey(to))) !== null) return;
  const fix =
    "must be a confirmed forward address. Add it with POST /v1/forward-addresses, and open the link that its owner gets.";
  throw invalid("then.forwardTo", fix);
}
