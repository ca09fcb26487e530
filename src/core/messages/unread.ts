/** Why something of a received message was not read. For all but the last three, no body and no file was. */
export const UNREAD = [
  "header_too_long",
  "too_many_lines",
  "not_mime",
  "too_slow",
  "too_many_parts",
  "nested_too_deep",
  "part_headers_too_long",
] as const;
export type Unread = (typeof UNREAD)[number];
