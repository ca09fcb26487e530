import { type Filter, MAX_SEGMENTS } from "../../core/audience/filter.ts";
import { idCeiling } from "../../core/ids.ts";
import { changesRow, type Db, type Statement } from "../engine/client.ts";
import { json, plain, table } from "../engine/columns.ts";
import { requireRoom } from "../engine/guards.ts";
import type { Place } from "../engine/place.ts";

/** A named filter of contacts. Times in milliseconds. */
export interface Segment {
  id: string;
  senderId: string;
  name: string;
  filter: Filter;
  createdAt: number;
  updatedAt: number;
}

const SEGMENTS = table<Segment>("segments", {
  id: plain("id"),
  senderId: plain("sender_id"),
  name: plain("name"),
  filter: json("filter"),
  createdAt: plain("created_at"),
  updatedAt: plain("updated_at"),
});

/** Returns a segment of the project; null if it has none with that id. */
export function getSegment(db: Db, senderId: string, id: string): Promise<Segment | null> {
  return SEGMENTS.first(db, "WHERE sender_id = ? AND id = ?", [senderId, id]);
}

/** Returns at most `take` of the project's segments, newest first, at a place. */
export function listSegments(db: Db, senderId: string, place: Place, take: number): Promise<Segment[]> {
  return SEGMENTS.page(db, {
    where: "sender_id = ?",
    args: [senderId],
    place,
    ceiling: idCeiling("seg"),
    take,
  });
}

/** Returns the statements that store a segment. With too many segments, the guard `too_many_records` undoes the write. */
export function insertSegment(segment: Segment): Statement[] {
  return [
    requireRoom("segments WHERE sender_id = ?", segment.senderId, MAX_SEGMENTS),
    SEGMENTS.insert(segment),
  ];
}

/** Changes the given fields. Returns the segment afterwards; null if the project has none with that id. */
export function updateSegment(
  db: Db,
  senderId: string,
  id: string,
  changes: Partial<Pick<Segment, "name" | "filter">>,
  now: number,
): Promise<Segment | null> {
  const { set, values } = SEGMENTS.assignments({ ...changes, updatedAt: now });
  return SEGMENTS.update(db, `SET ${set.join(", ")} WHERE sender_id = ? AND id = ?`, [
    ...values,
    senderId,
    id,
  ]);
}

/** Deletes a segment. Returns false if the project has none with that id. */
export function deleteSegment(db: Db, senderId: string, id: string): Promise<boolean> {
  return changesRow(db, "DELETE FROM segments WHERE sender_id = ? AND id = ?", [senderId, id]);
}
