import { type TSchema, Type } from "@sinclair/typebox";
import { DEFAULT_PAGE_LIMIT, MAX_PAGE_LIMIT } from "./paging.ts";
import { DATE_TIME } from "./shown-format.ts";

/** ISO 8601 time, as every `…At` field shows it. */
export const Timestamp = Type.String({
  ...DATE_TIME,
  description: "ISO 8601 time, UTC.",
  examples: ["2026-01-31T09:30:00.000Z"],
});

/** Pattern of a text that is stored: libSQL gives one back only up to its first NUL. */
export const WITHOUT_NUL = "^[^\\u0000]*$";
/** Pattern of a text that may get into a header field: a line break in it would begin a field of its own (header injection). */
export const ONE_LINE = "^[^\\u0000-\\u001f\\u007f]*$";

/** Characters of a name: a key's, a project's, a template's, a contact's, an inbox's. */
export const MAX_NAME_CHARS = 200;
const MAX_SEARCH_CHARS = 256;

/** A key's or a project's label. */
export const Name = Type.String({ minLength: 1, maxLength: MAX_NAME_CHARS, pattern: WITHOUT_NUL });

/** The schema or null. */
export function Nullable<Schema extends TSchema>(schema: Schema) {
  return Type.Union([schema, Type.Null()]);
}

/** One of the texts. */
export function OneOf<Text extends string>(texts: readonly Text[], description?: string) {
  return Type.Union(
    texts.map((text) => Type.Literal(text)),
    description === undefined ? {} : { description },
  );
}

/** The text that a list is searched for; in a query, it may be left out. */
export function Search(description: string) {
  return Type.Optional(
    Type.String({ minLength: 1, maxLength: MAX_SEARCH_CHARS, pattern: WITHOUT_NUL, description }),
  );
}

/** Query fields of every paged list; spread into the list's own query schema. */
export const PAGE_QUERY = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_PAGE_LIMIT,
      default: DEFAULT_PAGE_LIMIT,
      description: "Items a page.",
    }),
  ),
  cursor: Type.Optional(
    Type.String({ description: "`nextCursor` of the page before; keep the filters the same during a walk." }),
  ),
};

/** The page envelope over an item's schema. */
export function PageOf<Item extends TSchema>(item: Item) {
  return Type.Object({
    data: Type.Array(item),
    nextCursor: Type.Union([Type.String(), Type.Null()], {
      description:
        "Null: no further results. A page may be shorter than `limit`, even empty, and not be the last.",
    }),
  });
}

/** A time in milliseconds as the API shows it. */
export function showTime(at: number): string;
export function showTime(at: number | null): string | null;
export function showTime(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
