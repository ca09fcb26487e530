import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import type { Condition as Filter } from "../../core/audience/filter.ts";
import type { Db } from "../engine/client.ts";
import { contactPasses } from "./filter-sql.ts";

/** Contacts of one step. It takes some milliseconds, and other requests are served in between. */
const STEP = 5000;

/** Columns of the fields of a contact that may be empty. */
const COLUMNS: Readonly<Record<string, string>> = { firstName: "first_name", lastName: "last_name" };

/** Contacts that get a broadcast, and those of them who lack a value, by the path of its variable. */
export interface MissingValues {
  contacts: number;
  missing: Record<string, number>;
}

/**
 * Counts the contacts that pass a filter, and those who lack values.
 * @param fields `firstName` or `lastName`, or `properties.` and the name of a property
 */
export async function countMissing(
  db: Db,
  senderId: string,
  filter: Filter | null,
  fields: readonly string[],
): Promise<MissingValues> {
  const passes = contactPasses(filter);
  const lacks = fields.map((field) => {
    const column = COLUMNS[field];
    return column === undefined ? "properties ->> ? IS NULL" : `${column} IS NULL`;
  });
  const paths = fields
    .filter((field) => COLUMNS[field] === undefined)
    .map((field) => `$."${field.slice("properties.".length)}"`);
  const sums = lacks.map((sql, at) => `COALESCE(SUM(passes AND ${sql}), 0) AS n${at}`);
  const sql = `SELECT COUNT(*) AS seen, MAX(id) AS last, COALESCE(SUM(passes), 0) AS contacts${sums.map((sum) => `, ${sum}`).join("")}
    FROM (SELECT *, ${passes.sql} AS passes FROM (SELECT * FROM contacts WHERE sender_id = ? AND id > ? ORDER BY id LIMIT ${STEP}) contacts)`;
  const total: MissingValues = {
    contacts: 0,
    missing: Object.fromEntries(fields.map((field) => [field, 0])),
  };
  // The number of contacts of a project, which its plan limits, bounds the steps.
  for (let last: string | null = ""; last !== null; ) {
    const row: (Record<string, number> & { last: never }) | null = await db.first(sql, [
      ...paths,
      ...passes.args,
      senderId,
      last,
    ]);
    if (row === null) break;
    total.contacts += row.contacts ?? 0;
    fields.forEach((field, at) => {
      total.missing[field] = (total.missing[field] ?? 0) + (row[`n${at}`] ?? 0);
    });
    last = (row.seen ?? 0) < STEP ? null : String(row.last);
    await yieldToEventLoop();
  }
  return total;
}
