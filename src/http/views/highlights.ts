import { Type } from "@sinclair/typebox";
import type { Key } from "../../core/crypto/key-ring.ts";
import { seal, unseal } from "../../core/crypto/secretbox.ts";
import { invalid } from "../../core/errors.ts";
import type { Db } from "../../store/engine/client.ts";
import { timeOfPosition } from "../../store/search/positions.ts";
import { wordProgress } from "../../store/search/word-index.ts";
import { OneOf, PageOf, Search, showTime } from "../routing/schemas.ts";
import { DATE_TIME } from "../routing/shown-format.ts";

/** The query parameter that finds words. */
export const TextSearch = Search(
  "Words of the subject, of the first 64 KiB of each body, or of a file name. A message must have all of them. Case and accents do not count. A new message is found after a few seconds. One page compares at most 2000 messages, so it may be short or empty although more follow.",
);

const Highlight = Type.Object(
  {
    field: OneOf(["subject", "body", "fileName"]),
    fragment: Type.String({ description: "At most 200 characters of it, as plain text on one line." }),
    ranges: Type.Array(Type.Object({ start: Type.Integer(), end: Type.Integer() }), {
      description: "Where the words are in the fragment, in UTF-16 units.",
    }),
  },
  { title: "Highlight" },
);

/** The field of a found item that shows the words. */
export const Highlights = Type.Optional(
  Type.Array(Highlight, { description: "Where the words of `text` are. Absent without `text`." }),
);

/** Returns the schema of a page of items that may be found by words. */
export function FoundPageOf<Item extends Parameters<typeof PageOf>[0]>(item: Item) {
  return Type.Object({
    ...PageOf(item).properties,
    indexedSince: Type.Optional(
      Type.String({
        ...DATE_TIME,
        description:
          "Present while `text` does not find messages from before this time yet, because an upgrade still indexes them.",
      }),
    ),
  });
}

/** Returns the field of that page that says what is not indexed yet. */
export async function indexedSince(db: Db): Promise<{ indexedSince?: string | null }> {
  const { filled } = await wordProgress(db);
  return filled === null ? {} : { indexedSince: showTime(timeOfPosition(filled)) };
}

/**
 * Returns places as a cursor holds them. They count the messages of all projects, so a project must not see them.
 * @param key seals them
 */
export function sealPlaces(key: Key, places: readonly number[]): string {
  return seal(key, JSON.stringify(["places", ...places]));
}

/** Returns the places in a cursor; null if it is the first page. */
export function openPlaces(key: Key, sealed: string | null): number[] | null {
  if (sealed === null) return null;
  const [kind, ...places] = JSON.parse(unseal(key, sealed));
  if (kind !== "places") throw new Error("a cursor that holds no places");
  return places;
}

/** @throws AppError 422 if a search by words is also asked to wait */
export function requireNoWait(wait: number | undefined): void {
  if (wait === undefined) return;
  throw invalid(
    "wait",
    '"wait" and "text" exclude each other, because a new message is indexed later. Use "q".',
  );
}
