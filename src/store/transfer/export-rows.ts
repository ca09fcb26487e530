import { CHUNK_OCTETS, decoded } from "../contents/content-bytes.ts";
import type { ObjectReader } from "../contents/content-read.ts";
import type { MemoryBudget } from "../contents/memory-budget.ts";
import type { ContentEncoding } from "../sql/content-values.ts";
import type { Value } from "../sql/engine.ts";
import { type Kind, KIND_OF, ROWS_PER_READ } from "./kinds.ts";

/** One row by its columns. */
export type StoredRow = Readonly<Record<string, Value | ArrayBuffer>>;

/** Where rows are read: the database, or a snapshot of its file. */
export interface RowReader {
  all<Row>(sql: string, args: Value[]): Promise<Row[]>;
}

/** Returns the tables of the database. One that an earlier checkout made may lack some. */
export async function tablesOf(reader: RowReader): Promise<Set<string>> {
  const rows = await reader.all<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table'", []);
  return new Set(rows.map(({ name }) => name));
}

/** Returns true if the database has the project. */
export async function hasProject(reader: RowReader, id: string): Promise<boolean> {
  return (await reader.all("SELECT 1 FROM senders WHERE id = ?", [id])).length > 0;
}

/** Reads the exported rows of a kind by their key, a page at a time. @param project id; null: of all projects */
export async function* exportedRows(
  reader: RowReader,
  kind: Kind,
  project: string | null,
): AsyncGenerator<readonly StoredRow[], void, undefined> {
  const { key, as = {}, omit = [], rows: take = ROWS_PER_READ } = kind;
  const selected = ["t.*", ...Object.entries(as).map(([column, sql]) => `${sql} AS ${column}`)].join(", ");
  const rest = `ORDER BY ${key.map((column) => `t.${column}`).join(", ")} LIMIT ${take}`;
  let after: Value[] | null = null;
  for (;;) {
    const { where, args } = conditionOf(kind, project, after);
    const rows: StoredRow[] = await reader.all(
      `SELECT ${selected} FROM ${kind.table} t WHERE ${where} ${rest}`,
      args,
    );
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows.map((row) =>
      Object.fromEntries(Object.entries(row).filter(([column]) => !omit.includes(column))),
    );
    if (rows.length < take) return;
    after = key.map((column) => plainValue(last[column] ?? null));
  }
}

function conditionOf(
  { key, project: own, where = "TRUE" }: Kind,
  project: string | null,
  after: readonly Value[] | null,
): { where: string; args: Value[] } {
  const args: Value[] = project === null ? [] : [project];
  const conditions = [where, ...(project === null ? [] : [own ?? "FALSE"])];
  if (after !== null) {
    const places = after.map((value) => `?${args.push(value)}`);
    conditions.push(`(${key.map((column) => `t.${column}`).join(", ")}) > (${places.join(", ")})`);
  }
  return { where: conditions.join(" AND "), args };
}

/** Bytes come from the database as ArrayBuffers. */
export function plainValue(value: Value | ArrayBuffer): Value {
  return value instanceof ArrayBuffer ? new Uint8Array(value) : value;
}

interface ObjectContent {
  key: ArrayBuffer;
  size: number;
  encoding: ContentEncoding;
  object: string;
}

/**
 * Reads the contents in the object store, as rows of `content_chunks`: so a file needs no other store.
 * @throws if there is a content in the store, and `objects` is null
 */
export async function* chunksOfObjects(
  reader: RowReader,
  objects: ObjectReader | null,
  project: string | null,
  budget: MemoryBudget,
): AsyncGenerator<StoredRow, void, undefined> {
  const own = project === null ? "TRUE" : (KIND_OF.get("contents")?.project ?? "FALSE");
  let after = new Uint8Array();
  for (;;) {
    const [found] = await reader.all<ObjectContent>(
      `SELECT key, size, encoding, object FROM contents
        WHERE stored_in = 'object' AND ${own} AND key > ?${project === null ? 1 : 2} ORDER BY key LIMIT 1`,
      project === null ? [after] : [project, after],
    );
    if (found === undefined) return;
    const key = new Uint8Array(found.key);
    if (objects === null) throw new Error("contents are in an object store, and none is configured");
    const stored = await budget.hold(found.size, () => objects.read(found.object, found.size));
    const bytes = decoded(stored, found.encoding);
    if (bytes.length !== found.size) throw new Error(`the object ${found.object} is incomplete`);
    for (let ord = 0; ord * CHUNK_OCTETS < bytes.length; ord++)
      yield { key, ord, bytes: bytes.subarray(ord * CHUNK_OCTETS, (ord + 1) * CHUNK_OCTETS) };
    after = key;
  }
}
