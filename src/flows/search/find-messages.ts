import { conditionOf, type MessageFilter } from "../../store/lists/message-filter.ts";
import { type MessageSummary, toSummary } from "../../store/lists/message-list.ts";
import { isWanted } from "../../store/lists/message-page.ts";
import { placesBetween } from "../../store/lists/word-search.ts";
import { wordTermsWanted } from "../../store/search/search-terms.ts";
import type { TextQuery } from "../../store/search/text-query.ts";
import type { Contents } from "../../store/contents/content-read.ts";
import { findWords } from "./find.ts";
import type { Highlight } from "./highlights.ts";

/** A message that has the words, as lists show it. */
export interface FoundMessage extends MessageSummary {
  highlights: Highlight[];
  /** Where the next page begins after it. */
  next: number;
}

/** The messages of a project that pass a filter and have words. */
export interface MessageSearch {
  senderId: string;
  filter: MessageFilter;
  query: TextQuery;
}

/**
 * Returns at most `limit` messages that have the words, in the order in which they came, the newest first.
 * @param from where the page begins; null: at the newest
 */
export async function findMessages(
  deps: Contents,
  { senderId, filter, query }: MessageSearch,
  from: number | null,
  limit: number,
): Promise<{ messages: FoundMessage[]; stoppedAt: number | null }> {
  const places = await placesBetween(deps.db, filter);
  const { found, stoppedAt } = await findWords(deps, {
    search: {
      senderId,
      terms: wordTermsWanted(senderId, filter, new Set(query.flat())),
      passes: conditionOf(senderId, filter, null),
    },
    query,
    places: { ...places, first: Math.max(places.first, from ?? 0) },
    limit,
    wants: (row) => isWanted(row, filter),
  });
  const messages = found.map(({ row, highlights }) => ({
    ...toSummary(row),
    highlights,
    next: row.place + 1,
  }));
  return { messages, stoppedAt };
}
