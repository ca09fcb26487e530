import type { Condition as Filter, Operator, Subject } from "../../core/audience/filter.ts";
import type { PropertyValue } from "../../core/audience/properties.ts";
import type { Condition } from "../matching/substring.ts";

/*
 * A filter as SQL over a row of `contacts`. Each condition is 0 or 1, never NULL, so that `not` holds for contacts without a
 * value. Values and names are always parameters.
 */

/** Returns the SQL of whether a row of `contacts` passes a checked filter. @param filter null: all do */
export function contactPasses(filter: Filter | null): Condition {
  if (filter === null) return { sql: "TRUE", args: [] };
  if (!("join" in filter)) return comparison(subjectSql(filter.subject), filter.op, filter.value);
  const parts = filter.of.map(contactPasses);
  const joined = parts.map(({ sql }) => sql).join(filter.join === "all" ? " AND " : " OR ");
  return {
    sql: filter.join === "not" ? `NOT (${joined})` : `(${joined})`,
    args: parts.flatMap(({ args }) => args),
  };
}

const COMPARISONS = { gt: ">", gte: ">=", lt: "<", lte: "<=", withinDays: ">=", olderThanDays: "<" } as const;

/** Returns the SQL of a comparison, which is 0 or 1. */
export function comparison({ sql, args }: Condition, op: Operator, value: PropertyValue | null): Condition {
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

const FIELDS = {
  email: "contacts.email_key",
  subscribed: "contacts.subscribed",
  createdAt: "contacts.created_at",
  lastSentAt: "contacts.last_sent_at",
  lastOpenedAt: "contacts.last_opened_at",
  lastClickedAt: "contacts.last_clicked_at",
} as const;

function subjectSql(subject: Subject): Condition {
  switch (subject.kind) {
    case "property":
      return { sql: "(contacts.properties ->> ?)", args: [`$."${subject.name}"`] };
    case "topic":
      return {
        sql: "(contacts.subscribed AND COALESCE(contacts.topics ->> ?, ?) = 1)",
        args: [`$."${subject.id}"`, Number(subject.defaultSubscribed)],
      };
    default:
      return { sql: FIELDS[subject.kind], args: [] };
  }
}

function patternOf(op: "contains" | "startsWith" | "endsWith", text: string): string {
  const plain = text.replace(/[\\%_]/g, "\\$&");
  return `${op === "startsWith" ? "" : "%"}${plain}${op === "endsWith" ? "" : "%"}`;
}
