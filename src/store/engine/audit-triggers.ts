import type { Audited, Kind } from "./audited-tables.ts";

/** Maximum number of characters of a long value. */
const LONG_CHARS = 1000;

type Verb = "create" | "update" | "delete";

/** Returns the triggers of the tables, as a migration has them. */
export function auditTriggers(tables: readonly Audited[]): string {
  return tables.flatMap((audited) => verbsOf(audited).map((verb) => trigger(audited, verb))).join("\n");
}

function verbsOf({ busy }: Audited): Verb[] {
  return busy === true ? ["update", "delete"] : ["create", "update", "delete"];
}

/** Rows that go with their project, or with the data of a person, are one change, which has a row itself. */
const COUNTS = "(SELECT kind FROM audit_actor) IS NOT 'none'";
/** Two values, because SQLite builds a table in memory for a list of more, and delivery writes these tables all the time. */
const COUNTS_IF_BUSY = "(SELECT kind FROM audit_actor) NOT IN ('service', 'none')";
/** For a program that does not say when it writes. */
const DATABASE_TIME = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)";

function trigger(audited: Audited, verb: Verb): string {
  const { table, noun, id = "id", name, account, project, busy } = audited;
  const row = verb === "delete" ? "OLD" : "NEW";
  const of = (sql: string) => sql.replaceAll("row.", `${row}.`);
  const conditions = [busy === true ? COUNTS_IF_BUSY : COUNTS, ...conditionsOf(audited, verb)];
  return `CREATE TRIGGER audit_${table}_${verb} AFTER ${eventOf(audited, verb)} ON ${table}
WHEN ${conditions.join(" AND ")}
BEGIN
  INSERT INTO audit_log (account_id, sender_id, at, actor_type, actor_id, actor_name, ip, request_id,
      action, target_type, target_id, target_name, changes)
    SELECT ${of(account)}, ${of(project)}, COALESCE(a.at, ${DATABASE_TIME}),
      a.kind, a.id, a.name, a.ip, a.request_id,
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
  if (audited.busy === true && audited.named !== undefined)
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
