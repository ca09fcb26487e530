import type { Condition as Filter, Operator, Subject } from "../../core/audience/filter.ts";
import type { PropertyValue } from "../../core/audience/properties.ts";
import type { Condition } from "../matching/substring.ts";

/*
 * A filter as SQL over a row `a` of `audience`. Each condition is 0 or 1, never NULL, so that `not` holds for contacts without a
 * value. Values and names are always parameters.
 */

/** Returns the SQL of a checked filter. */
export function filterSql(filter: Filter): Condition {
  if (!("join" in filter)) return conditionSql(filter.subject, filter.op, filter.value);
  const parts = filter.of.map(filterSql);
  const joined = parts.map(({ sql }) => sql).join(filter.join === "all" ? " AND " : " OR ");
  return {
    sql: filter.join === "not" ? `NOT (${joined})` : `(${joined})`,
    args: parts.flatMap(({ args }) => args),
  };
}

const COMPARISONS = { gt: ">", gte: ">=", lt: "<", lte: "<=", withinDays: ">=", olderThanDays: "<" } as const;

function conditionSql(subject: Subject, op: Operator, value: PropertyValue | null): Condition {
  const { sql, args } = subjectSql(subject);
  const bound = typeof value === "boolean" ? Number(value) : value;
  switch (op) {
    case "set":
      return { sql: `${sql} IS NOT NULL`, args };
    case "unset":
      return { sql: `${sql} IS NULL`, args };
    case "eq":
      return { sql: `${sql} IS ?`, args: [...args, bound] };
    case "ne":
      return { sql: `${sql} IS NOT ?`, args: [...args, bound] };
    case "contains":
    case "startsWith":
    case "endsWith":
      return { sql: `COALESCE(${sql} LIKE ? ESCAPE '\\', 0)`, args: [...args, patternOf(op, String(value))] };
    default:
      return { sql: `COALESCE(${sql} ${COMPARISONS[op]} ?, 0)`, args: [...args, bound] };
  }
}

function subjectSql(subject: Subject): Condition {
  switch (subject.kind) {
    case "property":
      return { sql: "(a.properties ->> ?)", args: [`$."${subject.name}"`] };
    case "topic":
      return {
        sql: "(a.subscribed AND COALESCE(a.topics ->> ?, ?))",
        args: [`$."${subject.id}"`, Number(subject.defaultSubscribed)],
      };
    case "email":
      return { sql: "a.email", args: [] };
    case "createdAt":
      return { sql: "a.created_at", args: [] };
    case "subscribed":
      return { sql: "a.subscribed", args: [] };
  }
}

function patternOf(op: "contains" | "startsWith" | "endsWith", text: string): string {
  const plain = text.replace(/[\\%_]/g, "\\$&");
  return `${op === "startsWith" ? "" : "%"}${plain}${op === "endsWith" ? "" : "%"}`;
}

/** Returns the SQL of whether a row of `contacts` passes the filter. */
export function contactPasses(filter: Filter): Condition {
  const { sql, args } = filterSql(filter);
  return {
    sql: `EXISTS (SELECT 1 FROM audience a WHERE a.sender_id = contacts.sender_id AND a.contact_id = contacts.id AND ${sql})`,
    args,
  };
}
