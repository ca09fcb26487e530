import { existsSync, renameSync } from "node:fs";
import { resolve } from "node:path";
import type { Key } from "../../core/crypto/key-ring.ts";
import { seal } from "../../core/crypto/secretbox.ts";
import { budgetOf } from "../../store/contents/memory-budget.ts";
import { openSnapshot } from "../../store/embedded/connection.ts";
import { newestStep } from "../../store/engine/migrate.ts";
import {
  chunksOfObjects,
  exportedRows,
  hasProject,
  type RowReader,
  tablesOf,
} from "../../store/transfer/export-rows.ts";
import { KINDS } from "../../store/transfer/kinds.ts";
import { VERSION } from "../../version.ts";
import { syncFolder, writeAllSync } from "../../wiring/process/disk.ts";
import { databaseFile } from "../../wiring/store/database.ts";
import { currentKeys } from "../../wiring/store/installation-keys.ts";
import { openObjects } from "../../wiring/store/objects.ts";
import { type Context, defineCommand } from "../support/command.ts";
import { isThere, withAnyDatabase } from "../support/database.ts";
import { EX_OK, refused, unavailable } from "../support/exit.ts";
import { claimPart } from "../support/new-file.ts";
import { type Counts, FORMAT, type Header, KEY_CHECK, MAX_LINE_BYTES, rowLine } from "./file-format.ts";

/** Largest content that is read from the object store, bytes. */
const MAX_OBJECT_BYTES = 256 * 1024 * 1024;
/** Bytes that are written together. */
const WRITE_BYTES = 1024 * 1024;
const STANDARD_OUTPUT = 1;

interface Wanted {
  project: string | null;
  messages: boolean;
}

/** Writes what the database holds into a file that any version and engine can import. */
export const exportTo = defineCommand({
  name: "export",
  args: ["FILE"],
  flags: {
    messages: { type: "boolean", help: "also messages, threads, events and webhook deliveries" },
    project: { type: "string", value: "ID", help: "this project alone" },
  },
  about: `Writes accounts, projects, keys, domains with their DKIM keys, templates, contacts, suppressions, inboxes, webhooks,
routes and figures into FILE as NDJSON, while the service runs. \`postrider import FILE\` reads it: in another version, on a
server instead of a file, on another machine. FILE may be - for standard output.

Secrets stay sealed with the master key, which is not in FILE: import needs the same one. API keys are hashes. Addresses
and messages can be read, so FILE is for its owner alone.`,
  example: "postrider export estate.ndjson",
  async run({ flags, args: [name = ""] }, context) {
    const wanted = { project: flags.project ?? null, messages: flags.messages === true };
    const source = databaseFile(context.config);
    if (source !== null && !isThere(source)) throw unavailable(`there is no database at ${source}`);
    const toOutput = name === "-";
    const file = resolve(name);
    const sink = toOutput ? outputSink() : newFile(file);
    try {
      const counts = await writeAll(context, source, wanted, sink.write);
      sink.finish();
      if (!toOutput)
        context.out.record({ file, ...wanted, counts }, `exported ${summary(counts)} to ${file}`);
      return EX_OK;
    } catch (error) {
      sink.giveUp();
      throw error;
    }
  },
});

/** Says how many rows of each kind there are. */
export function summary(counts: Counts): string {
  const parts = Object.entries(counts).map(([table, count]) => `${count} ${table.replaceAll("_", " ")}`);
  return parts.join(", ") || "nothing";
}

interface Sink {
  write(text: string): void;
  finish(): void;
  giveUp(): void;
}

function outputSink(): Sink {
  return { ...gathered((text) => writeAllSync(STANDARD_OUTPUT, Buffer.from(text))), giveUp: () => undefined };
}

/** Gathers texts, so that few writes are made. */
function gathered(put: (text: string) => void): Pick<Sink, "write" | "finish"> {
  let waiting: string[] = [];
  let bytes = 0;
  const flush = (): void => {
    put(waiting.join(""));
    waiting = [];
    bytes = 0;
  };
  return {
    write(text) {
      waiting.push(text);
      bytes += text.length;
      if (bytes >= WRITE_BYTES) flush();
    },
    finish: flush,
  };
}

/** Writes to FILE.part first, so that FILE is never incomplete. */
function newFile(file: string): Sink {
  if (existsSync(file)) throw refused(`${file} exists and is not overwritten`);
  const part = `${file}.part`;
  const claimed = claimPart(part, "an export");
  const sink = gathered(claimed.write);
  return {
    write: sink.write,
    finish() {
      sink.finish();
      claimed.finish();
      renameSync(part, file);
      syncFolder(file);
    },
    giveUp: claimed.giveUp,
  };
}

/** A file is read as of one moment. A server has no such reads, so what is added meanwhile may lack its parents. */
function writeAll(
  context: Context,
  source: string | null,
  wanted: Wanted,
  write: (text: string) => void,
): Promise<Counts> {
  return withAnyDatabase(context, async (db) => {
    const { box } = await currentKeys({ db, clock: context.clock }, context.config);
    // Without the second key nobody could import what is still sealed with it.
    if (box.keys.length > 1) throw refused("the master key is being changed: export when that is over");
    const snapshot = source === null ? null : openSnapshot(source);
    try {
      return await writeRows(context, box, snapshot ?? db, wanted, write);
    } finally {
      snapshot?.close();
    }
  });
}

async function writeRows(
  { config, clock }: Context,
  boxKey: Key,
  reader: RowReader,
  { project, messages }: Wanted,
  write: (text: string) => void,
): Promise<Counts> {
  const tables = await tablesOf(reader);
  if (project !== null && !(await hasProject(reader, project))) throw refused(`no such project: ${project}`);
  const header: Header = {
    postrider: FORMAT,
    version: VERSION,
    schema: await newestStep(reader),
    at: new Date(clock.now()).toISOString(),
    messages,
    project,
    key: seal(boxKey, KEY_CHECK),
  };
  write(`${JSON.stringify(header)}\n`);
  const counts: Counts = {};
  const put = (table: string, row: Parameters<typeof rowLine>[1]): void => {
    const line = rowLine(table, row);
    if (Buffer.byteLength(line) > MAX_LINE_BYTES)
      throw unavailable(
        `a row of ${table} is longer than ${MAX_LINE_BYTES} bytes, which no import would read`,
      );
    write(line);
    counts[table] = (counts[table] ?? 0) + 1;
  };
  for (const kind of KINDS) {
    if (!tables.has(kind.table) || (kind.messages && !messages)) continue;
    if (project !== null && kind.project === null) continue;
    for await (const rows of exportedRows(reader, kind, project))
      for (const row of rows) put(kind.table, row);
    if (kind.table !== "content_chunks") continue;
    const objects = openObjects(config, clock)?.reader ?? null;
    for await (const row of chunksOfObjects(reader, objects, project, budgetOf(MAX_OBJECT_BYTES)))
      put(kind.table, row);
  }
  write(`${JSON.stringify({ end: counts })}\n`);
  return counts;
}
