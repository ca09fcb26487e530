import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import {
  byRareTerm,
  type Candidate,
  candidatesFrom,
  type Places,
  type WordSearch,
} from "../../store/lists/word-search.ts";
import type { TextQuery } from "../../store/search/text-query.ts";
import type { Contents } from "../../store/contents/content-read.ts";
import { type Highlight, highlightsOf } from "./highlights.ts";
import { readTexts } from "./texts.ts";

/** Maximum number of candidates that one page looks at. Those that the filters leave out count, too. */
export const MAX_LOOKED_AT = 2000;
/** Characters of messages that one page compares, in about a tenth of a second. A stranger can fill a message with any words. */
export const MAX_COMPARED_CHARS = 1024 * 1024;
/**
 * Maximum number of queries of one page. Each ends at a milestone if frequent words are never together. So a page takes at most 0.1 s,
 * with ten million messages as with two hundred thousand.
 */
export const MAX_QUERIES = 6;
/** Candidates read at a time: at first a few more than the page, then more if few of them match. */
const SPARE_ROWS = 4;
const MAX_CHUNK_ROWS = 128;

/** A message that has the words. */
export interface Found {
  row: Candidate;
  highlights: Highlight[];
}

/** A walk down the messages that have words. */
export interface WordWalk {
  search: WordSearch;
  query: TextQuery;
  places: Places;
  limit: number;
  /** Returns false for a candidate that the caller does not want. */
  wants(row: Candidate): boolean | Promise<boolean>;
  /** Called with each candidate that has the words. */
  took?(row: Candidate): void;
}

/** One page of messages that have the words. */
export interface FoundPage {
  found: Found[];
  /** If the page is short and the walk is not at its end: the place at which it continues. */
  stoppedAt: number | null;
}

/** Reads candidates until a page of them has the words. */
export async function findWords(deps: Contents, walk: WordWalk): Promise<FoundPage> {
  const { places, limit } = walk;
  const search = await byRareTerm(deps.db, walk.search, places);
  const found: Found[] = [];
  const left = { rows: MAX_LOOKED_AT, chars: MAX_COMPARED_CHARS };
  let first: number | null = places.first;
  let most = limit + SPARE_ROWS;
  for (let query = 0; query < MAX_QUERIES && first !== null && first <= places.last; ) {
    const chunk = await candidatesFrom(deps.db, search, { ...places, first }, Math.min(most, MAX_CHUNK_ROWS));
    for (const row of chunk.rows) {
      if (left.rows <= 0 || left.chars <= 0) return { found, stoppedAt: row.place };
      const highlights = await compared(deps, walk, row, left);
      if (highlights === null) continue;
      walk.took?.(row);
      found.push({ row, highlights });
      if (found.length === limit) return { found, stoppedAt: null };
    }
    if (chunk.rows.length < Math.min(most, MAX_CHUNK_ROWS)) query++;
    most *= 2;
    first = chunk.next;
    await yieldToEventLoop();
  }
  return { found, stoppedAt: first !== null && first <= places.last ? first : null };
}

async function compared(
  deps: Contents,
  { query, wants }: WordWalk,
  row: Candidate,
  left: { rows: number; chars: number },
): Promise<Highlight[] | null> {
  left.rows--;
  if (!(await wants(row))) return null;
  const texts = await readTexts(deps, row);
  left.chars -= texts.bodies.reduce((sum, body) => sum + body.length, texts.subject.length);
  const highlights = highlightsOf(texts, query);
  // Reads of a file are synchronous, so other requests are served between two messages.
  await yieldToEventLoop();
  return highlights;
}
