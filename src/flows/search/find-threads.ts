import type { Contents } from "../../store/contents/content-read.ts";
import {
  type Candidate,
  newerInThread,
  placesBetween,
  type WordSearch,
} from "../../store/lists/word-search.ts";
import { threadedTerm, wordTermsWanted } from "../../store/search/search-terms.ts";
import type { TextQuery } from "../../store/search/text-query.ts";
import { inListedThread, type ThreadFilter, threadsWithIds } from "../../store/threads/thread-list.ts";
import type { Thread } from "../../store/threads/threads.ts";
import { findWords } from "./find.ts";
import { type Highlight, highlightsOf } from "./highlights.ts";
import { readTexts } from "./texts.ts";

/** A thread with a message that has the words: its newest one. */
export interface FoundThread {
  thread: Thread;
  messageId: string;
  highlights: Highlight[];
  /** Where the next page begins after it. */
  next: ThreadPlace;
}

/**
 * A place in a walk through threads. Messages that come during the walk do not count, so that a thread keeps its place when it gets
 * another message with the words.
 */
export interface ThreadPlace {
  /** The newest place when the walk began. */
  begun: number;
  from: number;
}

export interface ThreadSearch {
  senderId: string;
  filter: ThreadFilter;
  query: TextQuery;
}

/**
 * Returns at most `limit` threads with a message that has the words, in the order of the newest such message.
 * @param place where the page begins; null: at the newest
 */
export async function findThreads(
  deps: Contents,
  { senderId, filter, query }: ThreadSearch,
  place: ThreadPlace | null,
  limit: number,
): Promise<{ threads: FoundThread[]; stoppedAt: ThreadPlace | null }> {
  const places = await placesBetween(deps.db, {});
  const search: WordSearch = {
    senderId,
    terms: [...wordTermsWanted(senderId, {}, new Set(query.flat())), threadedTerm(senderId)],
    passes: inListedThread({ filter }),
  };
  const seen = new Set<string>();
  let begun = place?.begun ?? null;
  const { found, stoppedAt } = await findWords(deps, {
    search,
    query,
    places: { ...places, first: place?.from ?? 0 },
    limit,
    async wants(row) {
      begun ??= row.place;
      const { thread_id: id, passes } = row;
      if (passes !== 1 || id === null || seen.has(id)) return false;
      return place === null || !(await hasNewer(deps, search, query, row, place));
    },
    took({ thread_id: id }) {
      if (id !== null) seen.add(id);
    },
  });
  const at = (from: number): ThreadPlace => ({ begun: begun ?? from, from });
  const ids = found.flatMap(({ row }) => row.thread_id ?? []);
  const threads = new Map(
    (await threadsWithIds(deps.db, senderId, ids)).map((thread) => [thread.id, thread]),
  );
  return {
    threads: found.flatMap(({ row, highlights }) => {
      const thread = threads.get(row.thread_id ?? "");
      return thread === undefined ? [] : [{ thread, messageId: row.id, highlights, next: at(row.place + 1) }];
    }),
    stoppedAt: stoppedAt === null ? null : at(stoppedAt),
  };
}

/** Returns true if an earlier page has shown the candidate's thread for a newer message. */
async function hasNewer(
  deps: Contents,
  search: WordSearch,
  query: TextQuery,
  { thread_id: id, place }: Candidate,
  { begun }: ThreadPlace,
): Promise<boolean> {
  for (const newer of await newerInThread(deps.db, search, id ?? "", begun, place))
    if (highlightsOf(await readTexts(deps, newer), query) !== null) return true;
  return false;
}
