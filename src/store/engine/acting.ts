import { type Actor, currentActor } from "../../core/actor.ts";
import { setBounded } from "../../core/collections.ts";
import type { Statement } from "../sql/engine.ts";
import { ALL_AUDITED } from "./audited-members.ts";

/** A kind of table: its changes are in the audit trail, delivery is busy with it, or neither. */
type Target = "audited" | "busy" | "other";

/** The tables of the audit trail. Rows of `audit_log` itself are written by what has no table. */
const TARGETS: ReadonlyMap<string, Target> = new Map([
  ["audit_log", "audited"],
  ...ALL_AUDITED.map(({ table, busy }) => [table, busy === undefined ? "audited" : "busy"] as const),
]);

/** Maximum number of SQL strings whose target is remembered. The service has a few hundred. */
const MAX_TEXTS = 2000;

const WRITES = /^\s*(?:INSERT(?: OR \w+)? INTO|UPDATE(?: OR \w+)?|DELETE FROM)\s+(\w+)/i;

const targets = new Map<string, Target>();

function targetOf({ sql, rows }: Statement): Target {
  // Such statements add rows of messages, or count.
  if (rows !== undefined) return "other";
  const known = targets.get(sql);
  if (known !== undefined) return known;
  const target = TARGETS.get(WRITES.exec(sql)?.[1]?.toLowerCase() ?? "") ?? "other";
  setBounded(targets, sql, target, MAX_TEXTS);
  return target;
}

const SET = "UPDATE audit_actor SET kind = ?, id = ?, name = ?, ip = ?, request_id = ?, at = ?";
const CLEAR: Statement = {
  sql: "UPDATE audit_actor SET kind = 'service', id = NULL, name = NULL, ip = NULL, request_id = NULL, at = NULL",
  args: [],
};

/**
 * Returns the statements of a write, between two that say who acts, if a table of the audit trail may change.
 * @param now milliseconds
 */
export function inActorsName(statements: Statement[], now: number): Statement[] {
  const actor = currentActor();
  return statements.some((statement) => isChange(statement, actor))
    ? [actorIs(actor, now), ...statements, CLEAR]
    : statements;
}

function isChange(statement: Statement, { type }: Actor): boolean {
  const target = targetOf(statement);
  if (type === "service") return target === "audited" && statement.seldom !== true;
  return target !== "other";
}

function actorIs({ type, id, name, ip, requestId }: Actor, now: number): Statement {
  return { sql: SET, args: [type, id, name, ip, requestId, now] };
}
