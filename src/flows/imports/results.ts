import type { Db } from "../../store/engine/client.ts";
import { type DoneRow, doneParts, type Outcome } from "../../store/imports/parts.ts";

/** Parts that one read looks through for rows of an outcome. */
export const PARTS_PER_READ = 40;

/** A row of an import with its place. */
export interface ResultRow {
  place: string;
  row: DoneRow;
}

/** Rows, and the place from which to read on; null at the end of what is done. */
export interface Results {
  rows: ResultRow[];
  stoppedAt: string | null;
}

/** Returns at most `take` results of a project's import after a place, in the order of the file. @param outcome only these rows */
export async function resultsOf(
  db: Db,
  { senderId, importId }: { senderId: string; importId: string },
  after: string | null,
  take: number,
  outcome?: Outcome,
): Promise<Results> {
  const [part, index] = after === null ? [0, -1] : after.split(".").map(Number);
  const first = part ?? 0;
  const parts = outcome === undefined ? Math.ceil(take / MIN_PART_ROWS) : PARTS_PER_READ;
  const found = await doneParts(db, senderId, importId, first, parts);
  const rows = found
    .flatMap(({ ord, rows: all }) =>
      all.map((row, at): ResultRow & { isNew: boolean } => ({
        place: `${ord}.${at}`,
        row,
        isNew: ord > first || at > (index ?? -1),
      })),
    )
    .filter(({ row, isNew }) => isNew && (outcome === undefined || row[2] === outcome));
  const last = found.at(-1);
  const stoppedAt = last === undefined || found.length < parts ? null : `${last.ord}.${last.rows.length}`;
  return {
    rows: rows.slice(0, take).map(({ place, row }) => ({ place, row })),
    stoppedAt: rows.length < take ? stoppedAt : null,
  };
}

/** Rows that a full part has at least: each has at most 64 KiB, a part at least 256 KiB. */
const MIN_PART_ROWS = 4;
