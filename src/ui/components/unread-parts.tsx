import type { Message } from "../api/types.ts";

const REASONS: Readonly<Record<NonNullable<Message["unread"]>, string>> = {
  header_too_long: "Its header is too long, so the body was not read.",
  too_many_lines: "It has too many lines, so the body was not read.",
  not_mime: "Its parts cannot be read as MIME.",
  too_slow: "Reading its body took too long.",
  too_many_parts: "It has too many parts. The rest is the file unread-parts.txt.",
  nested_too_deep: "Its parts are nested too deep. The rest is the file unread-parts.txt.",
  part_headers_too_long: "The headers of its parts are too long. The rest is the file unread-parts.txt.",
};

/** Says what was not read of a received message, with a link to its source. */
export function UnreadParts({ message: { id, unread } }: { message: Message }) {
  if (unread === undefined || unread === null) return null;
  return (
    <p class="quiet">
      {REASONS[unread]} <a href={`/messages/${id}?tab=source`}>The source has all of it.</a>
    </p>
  );
}
