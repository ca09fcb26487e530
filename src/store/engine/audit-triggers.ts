import type { Statement } from "../sql/engine.ts";
import type { Audited, Kind, Verb } from "./audited-tables.ts";

/** Maximum number of characters of a long value. */
const LONG_CHARS = 1000;

/** Returns the triggers of the tables, as a migration has them. */
export function auditTriggers(tables: readonly Audited[]): string {
  return tables.flatMap((audited) => verbsOf(audited).map((verb) => trigger(audited, verb))).join("\n");
}

function verbsOf({ busy }: Audited): readonly Verb[] {
  return busy ?? ["create", "update", "delete"];
}

/** Rows that go with their project, or with the data of a person, are one change, which has a row itself. */
const COUNTS = "(SELECT kind FROM audit_actor) IS NOT 'none'";
/** Two values, because SQLite builds a table in memory for a list of more, and delivery writes these tables all the time. */
const QUIET_ACTORS = "('service', 'none')";
const COUNTS_IF_BUSY = `(SELECT kind FROM audit_actor) NOT IN ${QUIET_ACTORS}`;
/** For a program that does not say when it writes. */
const DATABASE_TIME = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)";

const COLUMNS = `account_id, sender_id, at, actor_type, actor_id, actor_name, ip, request_id,
      action, target_type, target_id, target_name, changes`;
const ACTOR = `COALESCE(a.at, ${DATABASE_TIME}), a.kind, a.id, a.name, a.ip, a.request_id`;

/** Tables that delivery is busy with, with the noun of their changes and the column that names a row to people. */
const NOTED = {
  messages: { noun: "email", name: "subject" },
  threads: { noun: "thread", name: "subject" },
  webhook_deliveries: { noun: "webhook_delivery", name: "type" },
} as const;

/** A change of one row of a project that no trigger watches. */
export interface NotedChange {
  table: keyof typeof NOTED;
  verb: string;
  senderId: string;
  id: string;
  /** Each field with its JSON: SQL of that before, and that after. */
  changes: Readonly<Record<string, readonly [before: string, after: string]>>;
}

/** Returns the statement that adds a change to the audit trail before it is made, if any field differs. */
export function noteChange({ table, verb, senderId, id, changes }: NotedChange): Statement {
  const { noun, name } = NOTED[table];
  const pairs = Object.entries(changes).map(
    ([field, [before]]) =>
      `SELECT '${field}' AS field, json_array(json(${before}), json(?)) AS pair WHERE ${before} IS NOT ?`,
  );
  const sql = `INSERT INTO audit_log (${COLUMNS})
    SELECT * FROM (SELECT (SELECT account_id FROM senders WHERE id = row.sender_id), row.sender_id, ${ACTOR},
      '${noun}.${verb}', '${noun}', row.id, row.${name},
      (SELECT json_group_object(field, json(pair)) FROM (${pairs.join(" UNION ALL ")})) AS changes
    FROM ${table} row, audit_actor a WHERE row.id = ? AND row.sender_id = ? AND a.kind NOT IN ${QUIET_ACTORS})
    WHERE changes <> '{}'`;
  return { sql, args: [...Object.values(changes).flatMap(([, after]) => [after, after]), id, senderId] };
}

function trigger(audited: Audited, verb: Verb): string {
  const { table, noun, id = "id", name, account, project, busy } = audited;
  const row = verb === "delete" ? "OLD" : "NEW";
  const of = (sql: string) => sql.replaceAll("row.", `${row}.`);
  // The columns first: for most rows of busy tables they decide, and the actor is read from a table.
  const conditions = [...conditionsOf(audited, verb), busy === undefined ? COUNTS : COUNTS_IF_BUSY];
  return `CREATE TRIGGER audit_${table}_${verb} AFTER ${eventOf(audited, verb)} ON ${table}
WHEN ${conditions.join(" AND ")}
BEGIN
  INSERT INTO audit_log (${COLUMNS})
    SELECT ${of(account)}, ${of(project)}, ${ACTOR},
      ${actionOf(audited, verb)}, '${noun}', ${row}.${id}, ${verb === "create" ? "NEW" : "OLD"}.${name},
      (SELECT json_group_object(field, json(pair)) FROM (
        ${pairsOf(audited, verb).join("\n        UNION ALL ")}))
    FROM audit_actor a;
END;
`;
}

function watched({ fields, marks = [] }: Audited): string[] {
  return [...Object.keys(fields), ...marks];
}

function eventOf(audited: Audited, verb: Verb): string {
  if (verb === "update") return `UPDATE OF ${watched(audited).join(", ")}`;
  return verb === "create" ? "INSERT" : "DELETE";
}

function conditionsOf(audited: Audited, verb: Verb): string[] {
  if (verb === "update") return [`(${updatesOf(audited).join(" OR ")})`];
  return verb === "delete" && audited.goes !== undefined ? [`NOT (${audited.goes})`] : [];
}

/** Returns the conditions of which one holds if an update is a change. */
function updatesOf(audited: Audited): string[] {
  if (audited.busy !== undefined && audited.named !== undefined)
    return audited.named.map(({ when }) => `(${when})`);
  return watched(audited).map((column) => `OLD.${column} IS NOT NEW.${column}`);
}

/** Returns SQL of the action. */
function actionOf({ noun, named = [] }: Audited, verb: Verb): string {
  const usual = `'${noun}.${verb}'`;
  if (verb !== "update" || named.length === 0) return usual;
  const cases = named.map(({ verb: other, when }) => `WHEN ${when} THEN '${noun}.${other}'`);
  return `CASE ${cases.join("\n        ")} ELSE ${usual} END`;
}

/** Returns a query for each field, with its name and the JSON of [before, after] if it changed. */
function pairsOf({ fields }: Audited, verb: Verb): string[] {
  return Object.entries(fields).flatMap(([column, field]) => {
    const [name, kind] = typeof field === "string" ? ([field, "plain"] as const) : field;
    if (kind === "secret" && verb !== "update") return [];
    const before = verb === "create" ? "NULL" : shown(kind, `OLD.${column}`);
    const after = verb === "delete" ? "NULL" : shown(kind, `NEW.${column}`);
    const has = { create: `NEW.${column} IS NOT NULL`, delete: `OLD.${column} IS NOT NULL` };
    const changed = verb === "update" ? `OLD.${column} IS NOT NEW.${column}` : has[verb];
    return [`SELECT '${name}' AS field, json_array(${before}, ${after}) AS pair WHERE ${changed}`];
  });
}

function shown(kind: Kind, value: string): string {
  switch (kind) {
    case "plain":
      return value;
    case "long":
      return `iif(length(${value}) > ${LONG_CHARS}, substr(${value}, 1, ${LONG_CHARS}) || '…', ${value})`;
    case "flag":
      return `json(iif(${value}, 'true', 'false'))`;
    case "json":
      return `json(${value})`;
    case "time":
      return `strftime('%Y-%m-%dT%H:%M:%fZ', ${value} / 1000.0, 'unixepoch')`;
    case "secret":
      return "'***'";
  }
}
