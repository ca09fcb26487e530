import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import { AppError, type ErrorType } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import { limitsOf } from "../../core/quotas.ts";
import { propertyShapes } from "../../store/audience/properties.ts";
import type { Statement } from "../../store/engine/client.ts";
import { isBroken } from "../../store/engine/guards.ts";
import {
  beginImport,
  dropImport,
  type Import,
  type ImportCounts,
  startImport,
} from "../../store/imports/imports.ts";
import { type DoneRow, insertPart, type WaitingRow } from "../../store/imports/parts.ts";
import { withinLimits } from "../../store/projects/holdings.ts";
import type { Project } from "../../store/projects/projects.ts";
import { csvRows, type RawRow, type RowReader, SLICE_OCTETS } from "./csv-rows.ts";
import { checkUtf8, fileFault } from "./faults.ts";
import { type ColumnField, namesWithoutHeading, recognize, type Recognized } from "./forms.ts";
import { ndjsonRows } from "./ndjson-rows.ts";
import type { PartDeps } from "./part.ts";
import { type ReadingRows, rowValues } from "./row-values.ts";
import { countsOf, savePart } from "./save-part.ts";

// Someone with more contacts than a request holds would miss it. Parsing in the chore was tried first. A crash in the middle of
// a file then loses the state of the parser. A fault at the end of a file is found when half of it is saved.

/** Maximum number of imports of a project that are uploaded or in progress. */
export const MAX_IN_PROGRESS = 5;
/** Maximum number of rows, and about the octets, of a part. Its write takes some milliseconds. */
export const PART_ROWS = 250;
export const PART_OCTETS = 256 * 1024;
/** Maximum number of faults in a preview. */
export const PREVIEW_FAULTS = 20;

/** The types of files. */
export const FILE_TYPES = ["text/csv", "application/x-ndjson"] as const;

/** A file as it arrives. */
export interface Upload extends Pick<ReadingRows, "kind" | "reason" | "checkContact"> {
  senderId: string;
  project: Project;
  type: (typeof FILE_TYPES)[number];
  pieces: AsyncIterable<Uint8Array>;
}

/** The form of a file, and the effects that its import would have. */
export interface Preview extends ImportCounts {
  form: Recognized["form"];
  columns: { name: string; field: ColumnField | null }[];
  rows: number;
  faults: DoneRow[];
}

/**
 * Stores a file in parts while it arrives. The parts are committed later.
 * @param record returns statements for the write that ends the upload
 * @throws AppError 422 if the file cannot be read, and then nothing of it is imported; 409 if too many are in progress
 */
export async function takeUpload(
  deps: PartDeps,
  upload: Upload,
  record: (id: string) => readonly Statement[],
): Promise<string> {
  const { db, clock, quotas } = deps;
  const { senderId, project, kind } = upload;
  const now = clock.now();
  const begun: Import = {
    ...BEGINNING,
    id: newId("imp", now),
    senderId,
    kind,
    touchedAt: now,
    createdAt: now,
  };
  await db.write(beginImport(begun, MAX_IN_PROGRESS)).catch((error: unknown) => {
    throw isBroken(error, "too_many_records") ? tooMany() : error;
  });
  const within = withinLimits(senderId, ["storedOctets"], limitsOf(quotas, project.plan));
  let parts = 0;
  try {
    const { rows } = await readParts(deps, upload, async (part) => {
      const place = { senderId, importId: begun.id, ord: parts };
      if (!(await insertPart(db, place, part, clock.now(), within))) throw givenUp();
      parts += 1;
    });
    await db.write([...startImport(begun.id, rows, parts, clock.now()), ...record(begun.id)]);
    return begun.id;
  } catch (error) {
    await db.write([dropImport(begun.id)]);
    throw isBroken(error, "changed_since_read") ? givenUp() : error;
  }
}

const BEGINNING = {
  status: "uploading",
  parts: 0,
  doneParts: 0,
  rows: 0,
  created: 0,
  updated: 0,
  unchanged: 0,
  failed: 0,
  endedAt: null,
} as const;

function conflict(message: string): AppError {
  return new AppError("conflict" satisfies ErrorType, message);
}

function tooMany(): AppError {
  return conflict(`At most ${MAX_IN_PROGRESS} imports of a project are in progress. Wait until one is done.`);
}

function givenUp(): AppError {
  return conflict("The upload made no progress for too long. Send the file again.");
}

/** Says what the import of a file would do, and changes nothing. An address that is in it twice counts twice. */
export async function previewUpload(deps: PartDeps, upload: Upload): Promise<Preview> {
  const { senderId, project, kind } = upload;
  const counts = { created: 0, updated: 0, unchanged: 0, failed: 0 };
  const faults: DoneRow[] = [];
  const { file, rows } = await readParts(deps, upload, async (part) => {
    const settle = () => [];
    const preview = counts.created;
    const now = deps.clock.now();
    const done = await savePart(deps, kind, { senderId, project, now, rows: part, settle, preview });
    const more = countsOf(done);
    for (const outcome of Object.keys(counts) as (keyof ImportCounts)[]) counts[outcome] += more[outcome];
    const failed = done.filter(([, , outcome]) => outcome === "failed");
    faults.push(...failed.slice(0, PREVIEW_FAULTS - faults.length));
  });
  const fields = file.fieldsOf(file.names);
  const columns = file.names.map((name, at) => ({ name, field: fields[at] ?? null }));
  return { form: file.form, columns, rows, ...counts, faults };
}

/** Reads a file to its end, and hands on its rows in parts. Throws 422 if it cannot be read. */
async function readParts(
  { db, clock }: PartDeps,
  { type, pieces, ...upload }: Upload,
  take: (part: readonly WaitingRow[]) => Promise<void>,
): Promise<{ file: Recognized; rows: number }> {
  const reader: RowReader = type === "text/csv" ? csvRows(namesWithoutHeading) : ndjsonRows();
  const shapes = upload.kind === "contacts" ? await propertyShapes(db, upload.senderId) : [];
  let file: Recognized | null = null;
  let [part, octets, rows]: [WaitingRow[], number, number] = [[], 0, 0];
  const hand = async () => {
    if (part.length > 0) await take(part);
    [part, octets] = [[], 0];
  };
  const add = async (raws: readonly RawRow[]) => {
    for (const raw of raws) {
      if (raw.error === undefined) file ??= recognize(upload.kind, raw.names, shapes);
      const row = rowValues({ ...upload, file: file ?? NOTHING, now: clock.now() }, raw);
      part.push(row);
      rows += 1;
      octets += JSON.stringify(row).length;
      if (part.length >= PART_ROWS || octets >= PART_OCTETS) await hand();
    }
  };
  const utf8 = checkUtf8();
  for await (const piece of pieces)
    for (let at = 0; at < piece.length; at += SLICE_OCTETS) {
      const slice = piece.subarray(at, at + SLICE_OCTETS);
      utf8.take(slice);
      await add(reader.take(slice));
      await yieldToEventLoop();
    }
  utf8.end();
  await add(await reader.end());
  await hand();
  if (file === null) throw fileFault(rows === 0 ? "The file has no rows." : "No line is a JSON object.");
  return { file, rows };
}

/** For lines before the first that can be read. */
const NOTHING: Recognized = { form: "other", names: [], gives: {}, shapes: [], fieldsOf: () => [] };
