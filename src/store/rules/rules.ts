import { readyRules, type ReadyRules } from "../../core/rules/match.ts";
import {
  type AskedRule,
  MAX_POSITION,
  MAX_RULES,
  type RuleThen,
  type RuleWhen,
} from "../../core/rules/rule.ts";
import { endNotice } from "../notices/notices.ts";
import { ruleWorked } from "./rule-effects.ts";
import type { ConfigurationQuery, Db, Statement } from "../engine/client.ts";
import { flag, json, plain, table } from "../engine/columns.ts";
import { requireRoom } from "../engine/guards.ts";

/** A rule of a project. Times in milliseconds. */
export interface Rule extends AskedRule {
  senderId: string;
  /** Rules apply in its order, and the older of two with one position first. */
  position: number;
  enabled: boolean;
  createdAt: number;
  updatedAt: number;
}

const RULES = table<Rule>("rules", {
  id: plain("id"),
  senderId: plain("sender_id"),
  inboxId: plain("inbox_id"),
  position: plain("position"),
  name: plain("name"),
  enabled: flag("enabled"),
  when: json<RuleWhen>("conditions"),
  then: json<RuleThen>("actions"),
  createdAt: plain("created_at"),
  updatedAt: plain("updated_at"),
});

const READY: ConfigurationQuery<{ rules: string }, ReadyRules> = {
  sql: `SELECT json_group_array(json_object('id', id, 'name', name, 'inboxId', inbox_id,
      'when', json(conditions), 'then', json(actions))) AS rules
    FROM (SELECT * FROM rules WHERE sender_id = ? AND enabled = 1 ORDER BY position, id LIMIT ${MAX_RULES})`,
  read: ({ rules }) => readyRules(JSON.parse(rules)),
};

/** Returns the project's enabled rules in order, ready to be asked. They are cached until configuration changes. */
export async function enabledRules(db: Db, senderId: string): Promise<ReadyRules> {
  return (await db.readConfig(READY, [senderId])) ?? readyRules([]);
}

/** Returns a rule of the project; null if it has none with that id. */
export function getRule(db: Db, senderId: string, id: string): Promise<Rule | null> {
  return RULES.first(db, "WHERE sender_id = ? AND id = ?", [senderId, id]);
}

/** The place of a rule in the list. */
const PLACE = "printf('%010d', position) || id";
const POSITION_DIGITS = 10;

/** Returns the place of a rule in the list, which sorts as the rules do. */
export function rulePlace({ position, id }: Rule): string {
  return String(position).padStart(POSITION_DIGITS, "0") + id;
}

/** Returns at most `take` of the project's rules in their order, after a place. */
export function listRules(db: Db, senderId: string, after: string | null, take: number): Promise<Rule[]> {
  return RULES.all(db, `WHERE sender_id = ? AND ${PLACE} > ? ORDER BY position, id LIMIT ?`, [
    senderId,
    after ?? "",
    take,
  ]);
}

/** Returns the position after the project's last rule, at most the largest. */
export async function nextPosition(db: Db, senderId: string): Promise<number> {
  const sql = `SELECT MIN(COALESCE(MAX(position) + 1, 0), ${MAX_POSITION}) AS next FROM rules WHERE sender_id = ?`;
  return (await db.first<{ next: number }>(sql, [senderId]))?.next ?? 0;
}

/** Returns the statements that store a rule. They undo their write with the guard `too_many_records`. */
export function insertRule(rule: Rule): Statement[] {
  return [requireRoom("rules WHERE sender_id = ?", rule.senderId, MAX_RULES), RULES.insert(rule)];
}

/** The fields of a rule that may be changed. */
export type RuleChanges = Partial<
  Pick<Rule, "inboxId" | "position" | "name" | "enabled" | "when" | "then" | "updatedAt">
>;

/** Changes the given fields. Returns the rule afterwards; null if the project has none with that id. */
export async function updateRule(
  db: Db,
  senderId: string,
  id: string,
  changes: RuleChanges,
): Promise<Rule | null> {
  const { set, values } = RULES.assignments(changes);
  // A rule that is enabled again may fail as often as a new one.
  const again = changes.enabled === true;
  const written = await db.write([
    ...(again ? [ruleWorked(id), endNotice("rule_disabled", id, changes.updatedAt ?? 0)] : []),
    {
      sql: `UPDATE rules SET ${set.join(", ")} WHERE sender_id = ? AND id = ? RETURNING ${RULES.columns}`,
      args: [...values, senderId, id],
    },
  ]);
  return RULES.returned(written.at(-1));
}

/** Deletes a rule. Returns false if the project has none with that id. */
export async function deleteRule(db: Db, senderId: string, id: string, now: number): Promise<boolean> {
  if ((await getRule(db, senderId, id)) === null) return false;
  const [deleted] = await db.write([
    { sql: "DELETE FROM rules WHERE sender_id = ? AND id = ?", args: [senderId, id] },
    endNotice("rule_disabled", id, now),
  ]);
  return (deleted?.changes ?? 0) > 0;
}
