import { actingAs, NOBODY } from "../../core/actor.ts";
import { ERASED_PREFIX } from "../../store/projects/erased-addresses.ts";
import type { Clock } from "../../core/time/clock.ts";
import type { Db } from "../../store/engine/client.ts";
import { recordFact } from "../../store/installation/facts.ts";
import { AFTER_ALL, countHeld } from "../../store/messages/held-by-restore.ts";
import { installationKey } from "../../store/messages/sending.ts";
import { listAccounts } from "../../store/projects/accounts.ts";
import {
  columnsOf,
  type FileRow,
  importRows,
  type Outcome,
  refusedKey,
} from "../../store/transfer/import-rows.ts";
import { type Kind, PARENTS } from "../../store/transfer/kinds.ts";
import { heldText } from "../backups/held-text.ts";
import { accountOf } from "../support/account.ts";
import { refused, unavailable } from "../support/exit.ts";
import { linesOf, readLine } from "./file-format.ts";

/** Maximum number of rows of one commit. */
const ROWS_PER_WRITE = 200;
/** Characters of lines after which a commit is full. */
const CHARS_PER_WRITE = 4 * 1024 * 1024;
/** Maximum number of refused rows to which others may belong. With more, the import stops. */
export const MAX_REFUSED = 10_000;
/** Maximum number of accounts that are read to see if the file's is there. */
const MAX_ACCOUNTS = 100;
/** Maximum number of refused rows that are shown. */
const MAX_SHOWN = 20;

const IS_PARENT: ReadonlySet<string> = new Set(Object.values(PARENTS));

export interface Tally {
  created: number;
  alreadyThere: number;
  refused: number;
}

/** What an import did, or would do. */
export interface Report {
  /** By table. */
  tallies: Map<string, Tally>;
  /** The first of the refused rows. */
  refusals: { row: string; why: string }[];
  /** What else the operator should know. */
  notes: string[];
}

export interface Import {
  db: Db;
  clock: Clock;
  dryRun: boolean;
  /** See `Importing`. */
  reseal(sealed: string): string;
  /** The account that projects join, if the operator named one. */
  account: string | undefined;
  /** True if the file has messages. */
  messages: boolean;
}

/** The rows that wait for one commit. */
interface Waiting {
  kind: Kind;
  rows: FileRow[];
  chars: number;
  /** Line of the last one. */
  line: number;
}

/** Imports a file that was checked, a bounded number of rows in each commit. */
export async function importFile(path: string, given: Import): Promise<Report> {
  const { db, clock, dryRun, messages } = given;
  const report: Report = { tallies: new Map(), refusals: [], notes: [] };
  const step = await importing(given, report);
  let waiting: Waiting | null = null;
  let first = true;
  for await (const line of linesOf(path)) {
    const parsed = first ? null : readLine(line);
    first = false;
    if (parsed === null || "end" in parsed) continue;
    const isFull =
      waiting !== null &&
      (waiting.kind !== parsed.kind ||
        waiting.rows.length >= ROWS_PER_WRITE ||
        waiting.chars >= CHARS_PER_WRITE);
    if (waiting !== null && isFull) {
      await step(waiting);
      waiting = null;
    }
    waiting ??= { kind: parsed.kind, rows: [], chars: 0, line: 0 };
    waiting.rows.push(parsed.row);
    waiting.chars += line.text.length;
    waiting.line = line.number;
  }
  if (waiting !== null) await step(waiting);
  if (messages && !dryRun) {
    const held = await countHeld(db, AFTER_ALL);
    if (held.firstDueAt !== null) await db.write([recordFact("held", String(clock.now()))]);
    report.notes.push(heldText(held));
  }
  return report;
}

/** Returns the function that imports the rows that wait, and counts what became of them. */
async function importing(
  { db, clock, dryRun, reseal, account }: Import,
  report: Report,
): Promise<(waiting: Waiting) => Promise<void>> {
  const refusedRows = new Set<string>();
  const accounts = (await listAccounts(db, MAX_ACCOUNTS)).map(({ id }) => id);
  const started = accounts.length > 0;
  const hasKey = (await installationKey(db)) !== null;
  const to = { db, now: clock.now(), dryRun, reseal, started, hasKey, refused: refusedRows };
  const join = await joining(db, accounts, account, report);
  const columns = new Map<string, Set<string>>();
  return async ({ kind, rows, line }) => {
    const { table } = kind;
    const known = columns.get(table) ?? (await columnsOf(db, table));
    columns.set(table, known);
    const own = rows.map((row) => join.row(onlyColumns(row, kind, known, report)));
    const outcomes: Outcome[] = own.map((row) => join.verdict(kind, row) ?? "created");
    const open = own.filter((_, at) => outcomes[at] === "created");
    try {
      const write = () => importRows(to, kind, open);
      // In a new installation the trail of the file says who made the rows.
      const results = await (started ? write() : actingAs(NOBODY, write));
      for (const [at, outcome] of outcomes.entries())
        if (outcome === "created") outcomes[at] = results.shift() ?? "created";
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw unavailable(
        `the import stopped before line ${line} (${why}). Earlier rows are imported: run it again to go on`,
      );
    }
    for (const [at, outcome] of outcomes.entries()) count(report, refusedRows, kind, own[at] ?? {}, outcome);
  };
}

function count(report: Report, refusedRows: Set<string>, kind: Kind, row: FileRow, outcome: Outcome): void {
  const { table, key } = kind;
  const tally = report.tallies.get(table) ?? { created: 0, alreadyThere: 0, refused: 0 };
  report.tallies.set(table, tally);
  if (outcome === "created") tally.created++;
  else if (outcome === "there") tally.alreadyThere++;
  else {
    tally.refused++;
    const name = refusedKey(table, row[key[0] ?? ""] ?? null);
    if (IS_PARENT.has(table)) refusedRows.add(name);
    if (report.refusals.length < MAX_SHOWN) report.refusals.push({ row: name, why: outcome.refused });
    if (refusedRows.size > MAX_REFUSED)
      throw refused(
        `more than ${MAX_REFUSED} rows to which others belong are refused, the last because ${outcome.refused}. Earlier rows are imported`,
      );
  }
}

/** An earlier checkout may have had columns that are gone. */
function onlyColumns(row: FileRow, { table }: Kind, known: ReadonlySet<string>, report: Report): FileRow {
  const unknown = Object.keys(row).filter((column) => !known.has(column));
  if (unknown.length === 0) return row;
  const note = `left out, because this version has no such column: ${table}.${unknown.join(`, ${table}.`)}`;
  if (!report.notes.includes(note)) report.notes.push(note);
  return Object.fromEntries(Object.entries(row).filter(([column]) => known.has(column)));
}

interface Joining {
  row(row: FileRow): FileRow;
  /** Returns what becomes of a row that is not imported as the others are. */
  verdict(kind: Kind, row: FileRow): Outcome | null;
}

/** If the installation has an account, projects of the file join it, and what is for the whole account stays out. */
async function joining(
  db: Db,
  accounts: readonly string[],
  wanted: string | undefined,
  report: Report,
): Promise<Joining> {
  const joined = new Map<string, string>();
  const target = accounts.length === 0 ? null : await accountOf(db, wanted).catch((error: unknown) => error);
  return {
    row: (row) => {
      const to = joined.get(String(row.account_id));
      return to === undefined ? row : { ...row, account_id: to };
    },
    verdict({ table }, row) {
      if (table === "accounts" && accounts.length > 0 && !accounts.includes(String(row.id))) {
        if (target instanceof Error) throw target;
        joined.set(String(row.id), String(target));
        report.notes.push(`the projects of account ${String(row.id)} join account ${String(target)}`);
        return "there";
      }
      const address = { suppressions: row.email, erased_unsubscriptions: row.address }[table];
      if (joined.size > 0 && String(address).startsWith(ERASED_PREFIX))
        return { refused: "it stands for an erased address, which only its own account recognizes" };
      const forAll = table === "members" || (table === "api_keys" && row.sender_id == null);
      if (forAll && [...joined.values()].includes(String(row.account_id)))
        return { refused: "it has rights over the whole account, and the file's projects join another one" };
      return null;
    },
  };
}
