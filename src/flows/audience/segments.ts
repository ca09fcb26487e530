import { type Condition, type Filter, MAX_SEGMENTS, readFilter } from "../../core/audience/filter.ts";
import { AppError, existing } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import { getSegment, insertSegment, type Segment, updateSegment } from "../../store/audience/segments.ts";
import type { Db, Statement } from "../../store/engine/client.ts";
import { whatContactsHave } from "../projects/contacts.ts";
import { tooManyRecords } from "../quotas.ts";

/** Returns a filter that is ready to be asked at `now`. @throws AppError 422 if it is not one */
export async function checkedFilter(
  db: Db,
  senderId: string,
  filter: Filter,
  now: number,
): Promise<Condition> {
  return readFilter(filter, { ...(await whatContactsHave(db, senderId)), now });
}

/** The filter of a segment, and the same ready to be asked at a time. */
export interface SegmentFilter {
  filter: Filter;
  condition: Condition;
}

/**
 * Returns the filter of a segment, ready to be asked at `now`.
 * @throws AppError 404 if there is no such segment; 409 if it names a property or topic that was deleted
 */
export async function segmentFilter(
  db: Db,
  senderId: string,
  id: string,
  now: number,
): Promise<SegmentFilter> {
  const { filter } = existing("segment", await getSegment(db, senderId, id));
  try {
    return { filter, condition: await checkedFilter(db, senderId, filter, now) };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new AppError("conflict", `The segment cannot be asked any more: ${error.message}`, {
      code: "invalid_state",
    });
  }
}

/**
 * Adds a segment.
 * @param record returns statements for the same write
 * @throws AppError 422 if the filter is not one; 403 if there are too many
 */
export async function createSegment(
  db: Db,
  senderId: string,
  { name, filter }: Pick<Segment, "name" | "filter">,
  now: number,
  record: (segment: Segment) => readonly Statement[],
): Promise<Segment> {
  await checkedFilter(db, senderId, filter, now);
  const times = { createdAt: now, updatedAt: now };
  const segment = { id: newId("seg", now), senderId, name: name.toWellFormed(), filter, ...times };
  await db
    .write([...insertSegment(segment), ...record(segment)])
    .catch(tooManyRecords(`A project has at most ${MAX_SEGMENTS} segments.`, "segments"));
  return segment;
}

/** Changes the given fields of a segment. @throws AppError 404; 422 if the filter is not one */
export async function changeSegment(
  db: Db,
  { senderId, id }: { senderId: string; id: string },
  changes: Partial<Pick<Segment, "name" | "filter">>,
  now: number,
): Promise<Segment> {
  if (changes.filter !== undefined) await checkedFilter(db, senderId, changes.filter, now);
  return existing("segment", await updateSegment(db, senderId, id, changes, now));
}
