import { type TSchema, Type } from "@sinclair/typebox";
import { ERROR_CODES, ERROR_TYPES } from "../../core/errors.ts";
import { PLANS, TRUST_TIERS } from "../../core/plans.ts";
import { DEFAULT_PAGE_LIMIT, MAX_PAGE_LIMIT } from "./paging.ts";
import { DATE_TIME } from "./shown-format.ts";

/** ISO 8601 time, as every `…At` field shows it. */
export const Timestamp = Type.String({
  ...DATE_TIME,
  description: "ISO 8601 time, UTC.",
  examples: ["2026-01-31T09:30:00.000Z"],
});

/** Options of a string that is stored, because libSQL returns a string only up to its first NUL. */
export const WITHOUT_NUL = { pattern: "^[^\\u0000]*$", meaning: "without NUL" };
/** Options of a stored text that must show something, because a name of spaces cannot be told apart in a list. */
export const NOT_BLANK = {
  pattern: "^[^\\u0000]*[^\\u0000\\s][^\\u0000]*$",
  meaning: "with at least one visible character and without NUL",
};
/**
 * Options of a string that may get into a header field. A line break in it would begin another field (header
 * injection).
 */
export const ONE_LINE = {
  pattern: "^[^\\u0000-\\u001f\\u007f]*$",
  meaning: "without line breaks or control characters",
};

/** Options of addresses and times in requests. `readQuery` also checks that a query value is an address. */
export const EMAIL = { expected: "an email address", examples: ["ana@example.com"] };
export const TIME = {
  expected: "an ISO 8601 date-time with a zone",
  examples: ["2026-01-31T09:30:00Z"],
};
export const FUTURE_TIME = { ...TIME, examples: ["2099-12-31T00:00:00Z"] };
export const DAY_OR_TIME = {
  expected: "an ISO 8601 day or a date-time with a zone",
  examples: ["2026-01-31", "2026-01-31T09:30:00Z"],
};

/** Maximum characters in the name of a key, project, template, contact or inbox. */
export const MAX_NAME_CHARS = 200;
const MAX_SEARCH_CHARS = 256;
/** Maximum characters of an id that a request names. */
export const MAX_ID_CHARS = 64;

/** The name of an API key or of a project. */
export const Name = Type.String({
  minLength: 1,
  maxLength: MAX_NAME_CHARS,
  ...NOT_BLANK,
  examples: ["Production"],
});

/** Returns a schema that also takes null. */
export function Nullable<Schema extends TSchema>(schema: Schema) {
  return Type.Union([schema, Type.Null()]);
}

/** Returns a schema that takes one of the values. */
export function OneOf<Text extends string>(texts: readonly Text[], description?: string) {
  return Type.Union(
    texts.map((text) => Type.Literal(text)),
    description === undefined ? {} : { description },
  );
}

/** Returns a schema that shows one of the values. */
export function ShownOneOf(texts: readonly string[]) {
  return Type.Unsafe<string>(OneOf(texts));
}

/** Returns the schema of the name of a plan or trust tier: a built-in one, or one that the operator has added. */
function NameOf(texts: readonly string[], expected: string, description: string) {
  const variants = [OneOf(texts), Type.String({ examples: [...texts] })];
  return Type.Unsafe<string>(Type.Union(variants, { expected, description, examples: [...texts] }));
}
export const PlanName = NameOf(PLANS, "the name of a plan", "Sets the request rate.");
export const TierName = NameOf(TRUST_TIERS, "the name of a trust tier", "Limits the recipients per UTC day.");

/** Returns the schema of the optional query parameter that searches a list. */
export function Search(description: string) {
  return Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_SEARCH_CHARS,
      ...WITHOUT_NUL,
      description,
      examples: ["ana"],
    }),
  );
}

/** Query parameters of every paged list. Spread them into the list's own query schema. */
export const PAGE_QUERY = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_PAGE_LIMIT,
      default: DEFAULT_PAGE_LIMIT,
      description: "Items per page.",
    }),
  ),
  cursor: Type.Optional(
    Type.String({
      expected: '"nextCursor" of the previous page',
      description: "`nextCursor` of the previous page. Keep the filters the same from page to page.",
    }),
  ),
};

/** Returns the schema of a page of items. */
export function PageOf<Item extends TSchema>(item: Item) {
  return Type.Object({
    data: Type.Array(item),
    nextCursor: Type.Union([Type.String(), Type.Null()], {
      examples: [null],
      description:
        "Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.",
    }),
  });
}

const Warning = Type.Object(
  {
    param: Type.String({ description: "Path of the field, such as `scheduled_at`." }),
    message: Type.String(),
  },
  { title: "Warning" },
);
/** Warnings in the answer to a write. */
export const Warnings = Type.Optional(
  Type.Array(Warning, {
    description: "What was ignored or may not do what you expect. Absent if there is nothing to say.",
  }),
);

/** Why one item of a batch was refused. */
export const ItemError = Type.Object(
  {
    message: Type.String(),
    code: OneOf(
      [...new Set([...ERROR_CODES, ...ERROR_TYPES])],
      "If the fault has no specific code: the type of the error.",
    ),
    param: Type.String({ description: "The field at fault. Empty if it is the whole item." }),
    type: OneOf(ERROR_TYPES),
    resetAt: Type.Optional(Timestamp),
  },
  { title: "ItemError" },
);

/** Returns a time in milliseconds as the API shows it. */
export function showTime(at: number): string;
export function showTime(at: number | null): string | null;
export function showTime(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
