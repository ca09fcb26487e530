import { MAX_SEGMENTS } from "../../../core/audience/filter.ts";
import { AppError, existing, invalid } from "../../../core/errors.ts";
import { randomBase62 } from "../../../core/ids.ts";
import { getSegment, listSegments, type Segment } from "../../../store/audience/segments.ts";
import type { Db } from "../../../store/engine/client.ts";

/*
 * A segment of Resend has members, and one of ours a filter. Programs that add people to segments would miss this: a segment that
 * is made under `/resend` filters by a property of its own, which its members have.
 */

/** The id of the segment that has all contacts. */
export const ALL = "all";
const PREFIX = "segment_";
const RANDOM_CHARS = 16;

/** Returns the name of the property that the members of a new segment have. */
export function newMemberProperty(): string {
  return `${PREFIX}${randomBase62(RANDOM_CHARS)}`;
}

/** Returns the filter of a segment whose members have the property. */
export function memberFilter(property: string): Record<string, unknown> {
  return { property, op: "eq", value: true };
}

/** Returns the property that the members of a segment have; null if it has another filter. */
export function memberProperty({ filter: { property, op, value } }: Segment): string | null {
  const isOfMembers =
    typeof property === "string" && property.startsWith(PREFIX) && op === "eq" && value === true;
  return isOfMembers ? property : null;
}

/** Returns the values of properties by which a contact joins segments, or leaves them. @throws AppError 404, 422 */
export async function membership(
  db: Db,
  senderId: string,
  ids: readonly string[],
  joins: boolean,
): Promise<Record<string, true | null>> {
  const values: Record<string, true | null> = {};
  for (const id of ids) {
    if (id === ALL && joins) continue;
    if (id === ALL) throw new AppError("not_found", `No contact can leave the segment "${ALL}".`);
    const property = memberProperty(existing("segment", await getSegment(db, senderId, id)));
    if (property === null)
      throw invalid(
        "segments",
        `has ${id}, whose filter says who is in it. Change the contact or the filter.`,
      );
    values[property] = joins ? true : null;
  }
  return values;
}

/** Returns the segments that a contact with these properties was added to. */
export async function segmentsOf(
  db: Db,
  senderId: string,
  properties: Readonly<Record<string, unknown>>,
): Promise<Segment[]> {
  const segments = await listSegments(db, senderId, null, MAX_SEGMENTS);
  return segments.filter((segment) => properties[memberProperty(segment) ?? ""] === true);
}
