import { idBytes } from "../../core/ids.ts";

/**
 * How the index keeps the order of ids. Its posting lists hold integers and grow cheaply at their end only. Ids have
 * 128 bits and arrive slightly out of order, because an id is made before the wait for its commit. So a message gets
 * the position after the last one, but never one before the time in its id, nor more than LAG_MS after it:
 *   firstPosition(time) <= position <= lastPosition(time).
 * A walk down the positions that has come below a time has seen every id of that time and later.
 */
const POSITIONS_PER_MS = 16;
/**
 * A message that is later than this gets a position of its time, which costs the index one more segment.
 */
const LAG_MS = 250;

/** Above every position until the year 2109. */
const LAST_ROW = 2 ** 46;

/**
 * Returns the index's rowid of a position. Rowids fall as time rises: FTS5 reads posting lists upwards several times
 * faster, and a page begins with the newest.
 */
export function rowOfPosition(place: number): number {
  return LAST_ROW - place;
}

/** Returns the position of the index's row. */
export function positionOfRow(row: number): number {
  return LAST_ROW - row;
}

/** SQL for the position of the index's row. */
export const POSITION_OF_ROW = `${LAST_ROW} - message_terms.rowid`;

/** Returns the first position of a time (milliseconds). */
export function firstPosition(time: number): number {
  return time * POSITIONS_PER_MS;
}

/** Returns the time (milliseconds) of a position. No message of a later time has a lower position. */
export function timeOfPosition(place: number): number {
  return Math.floor(place / POSITIONS_PER_MS);
}

/** Returns the last position that a message of that time may have. */
export function lastPosition(time: number): number {
  return (time + LAG_MS) * POSITIONS_PER_MS;
}

/** Returns the time in a message's id (milliseconds): the first 48 bits, RFC 9562 §5.7; null if it is no such id. */
export function timeOfId(id: string): number | null {
  const bytes = idBytes("msg", id);
  return bytes === null ? null : Buffer.from(bytes).readUIntBE(0, 6);
}

/**
 * Returns the position of a message added after position `last`. Late messages are spread over the positions of their
 * time by the random end of their ids, so few share one.
 */
export function positionAfter(last: number, id: string, createdAt: number): number {
  const time = timeOfId(id) ?? createdAt;
  const [first, highest] = [firstPosition(time), lastPosition(time)];
  if (last < highest) return Math.max(first, last + 1);
  const random = Buffer.from(idBytes("msg", id) ?? [0, 0]).readUInt16BE();
  return first + (random % (highest - first + 1));
}
