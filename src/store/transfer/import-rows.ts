import { sealedColumns } from "../installation/secrets.ts";
import { ConstraintError, type Db, type Statement, type Value } from "../engine/client.ts";
import { isBroken, requireGuard } from "../engine/guards.ts";
import { HELD_MS } from "../messages/held-by-restore.ts";
import { DAY_MS } from "../../core/time/units.ts";
import { type Kind, PARENTS } from "./kinds.ts";

/** A row of a file. */
export type FileRow = Readonly<Record<string, Value>>;

/** What happened to a row: it is new, or its id existed, or why it cannot be here. */
export type Outcome = "created" | "there" | { refused: string };

export interface Importing {
  db: Db;
  /** Milliseconds. */
  now: number;
  /** Writes nothing, but finds what would be refused. */
  dryRun: boolean;
  /** Seals with this installation's key what the file has sealed. */
  reseal(sealed: string): string;
  /** True if the installation had an account before the import. */
  started: boolean;
  /** True if the installation had a DKIM key of its own before the import. */
  hasKey: boolean;
  /** Keys of refused rows, as `refusedKey` makes them. */
  refused: ReadonlySet<string>;
}

/** Time that an imported content is kept before a message of the file names it. */
const CONTENT_KEPT_MS = 7 * DAY_MS;

/** Names a row of a table whose first key column is an id. */
export function refusedKey(table: string, id: Value): string {
  return `${table} ${String(id)}`;
}

/** Returns the columns of a table. */
export async function columnsOf(db: Db, table: string): Promise<Set<string>> {
  const rows = await db.all<{ name: string }>("SELECT name FROM pragma_table_info(?)", [table]);
  return new Set(rows.map(({ name }) => name));
}

/**
 * Imports rows of one kind in one commit. If the database refuses one of them, imports each alone, so that only that one
 * is left out.
 * @param rows with columns of the table alone
 * @returns an outcome for each row
 */
export async function importRows(to: Importing, kind: Kind, rows: readonly FileRow[]): Promise<Outcome[]> {
  const there = await existing(to.db, kind, rows);
  const outcomes = rows.map((row): Outcome => {
    const parent = refusedParent(to, row) ?? ownRow(to, kind, row);
    if (there.has(keyText(kind, row))) return "there";
    return parent === null ? "created" : { refused: parent };
  });
  const fresh = rows.filter((_, at) => outcomes[at] === "created");
  if (fresh.length === 0 || (await tried(to, kind, fresh)) === null) return outcomes;
  for (const [at, row] of rows.entries())
    if (outcomes[at] === "created") outcomes[at] = await importAlone(to, kind, row);
  return outcomes;
}

async function importAlone(to: Importing, kind: Kind, row: FileRow): Promise<Outcome> {
  const why = await tried(to, kind, [row]);
  if (why === null) return "created";
  // The file has it twice, or another process has just written it.
  return (await existing(to.db, kind, [row])).size > 0 ? "there" : { refused: why };
}

function refusedParent({ refused }: Importing, row: FileRow): string | null {
  for (const [column, table] of Object.entries(PARENTS)) {
    const id = row[column];
    if (id != null && refused.has(refusedKey(table, id))) return `${table} ${String(id)} was refused`;
  }
  return null;
}

function ownRow({ hasKey, started }: Importing, { table, first }: Kind, row: FileRow): string | null {
  if (first && started) return "the installation has its own";
  return hasKey && table === "dkim_keys" && row.domain_id == null ? "the installation has its own key" : null;
}

/** Compares keys as text, in which bytes are hexadecimal. */
function keyText({ key }: Kind, row: Readonly<Record<string, Value | ArrayBuffer>>): string {
  return JSON.stringify(
    key.map((column) => {
      const value = row[column] ?? null;
      return typeof value === "object" && value !== null
        ? Buffer.from(value as ArrayBuffer).toString("hex")
        : value;
    }),
  );
}

async function existing(db: Db, kind: Kind, rows: readonly FileRow[]): Promise<Set<string>> {
  if (rows.length === 0) return new Set();
  const columns = kind.key.join(", ");
  const one = `(${kind.key.map(() => "?").join(", ")})`;
  const found = await db.all<Record<string, Value>>(
    `SELECT ${columns} FROM ${kind.table} WHERE (${columns}) IN (VALUES ${rows.map(() => one).join(", ")})`,
    rows.flatMap((row) => kind.key.map((column) => row[column] ?? null)),
  );
  return new Set(found.map((row) => keyText(kind, row)));
}

/** Writes new rows in one commit. Returns null, or why the database refuses them. */
async function tried(to: Importing, kind: Kind, rows: readonly FileRow[]): Promise<string | null> {
  const statements = rows.flatMap((row) => statementsFor(to, kind, row));
  const undo = to.dryRun ? [requireGuard("dry_run", { sql: "FALSE", args: [] })] : [];
  try {
    await to.db.write([...statements, ...undo]);
    return null;
  } catch (error) {
    if (isBroken(error, "dry_run")) return null;
    if (!(error instanceof ConstraintError)) throw error;
    // A dry run has not written the row's parents. Every other constraint is checked before.
    if (error.foreignKey) return to.dryRun ? null : "what it belongs to is not in this database";
    if (error.unique !== null)
      return `another row has the same ${error.unique.replaceAll(`${kind.table}.`, "")}`;
    return error.message;
  }
}

function statementsFor(to: Importing, kind: Kind, given: FileRow): Statement[] {
  const row = asHere(to, kind, given);
  const { quiet } = kind;
  const late = quiet === undefined ? undefined : row[quiet.column];
  const isQuiet = late != null && (quiet?.counted?.includes(String(late)) ?? true);
  const first = quiet !== undefined && isQuiet ? { ...row, [quiet.column]: quiet.until } : row;
  const columns = Object.keys(first);
  const insert: Statement = {
    sql: `INSERT INTO ${kind.table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`,
    args: columns.map((column) => first[column] ?? null),
  };
  const keys = kind.key.map((column) => row[column] ?? null);
  const named = (kind.contents ?? []).flatMap((column) => row[column] ?? []);
  return [
    insert,
    ...(quiet !== undefined && isQuiet
      ? [
          {
            sql: `UPDATE ${kind.table} SET ${quiet.column} = ? WHERE ${kind.key.map((column) => `${column} = ?`).join(" AND ")}`,
            args: [late ?? null, ...keys],
          },
        ]
      : []),
    ...named.map((content) => ({
      sql: "UPDATE contents SET refs = refs + 1 WHERE key = ?",
      args: [content],
    })),
  ];
}

/** Returns a row of the file as it is stored here. What was due is held, as after a restore. */
function asHere(to: Importing, kind: Kind, row: FileRow): FileRow {
  const sealed = sealedColumns(kind.table).filter((column) => row[column] != null);
  const again = sealed.map((column) => [column, to.reseal(String(row[column]))]);
  const here: Record<string, Value> = { ...row, ...Object.fromEntries(again) };
  if (kind.table === "contents") return { ...here, refs: 0, created_at: to.now + CONTENT_KEPT_MS };
  if (!["recipients", "webhook_deliveries"].includes(kind.table)) return here;
  const claimed = here.claimed_by != null;
  const due = claimed ? to.now : Number(here.due_at);
  if (here.due_at == null && !claimed) return here;
  return {
    ...here,
    ...(claimed && kind.table === "recipients" ? { status: "queued" } : {}),
    claimed_by: null,
    due_at: due < HELD_MS ? due + HELD_MS : due,
  };
}
