import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import type { Contents } from "../../store/contents/content-read.ts";
import {
  addWords,
  changedWords,
  newWords,
  oldWords,
  wordProgress,
  type WordsWaiting,
} from "../../store/search/word-index.ts";
import { wordsIn } from "../../store/search/words.ts";
import { mergePieces } from "../sweep/index-messages.ts";
import { type MessageTexts, readTexts } from "./texts.ts";

/** Messages indexed in one write, whose words take about ten milliseconds to store. */
export const WORDS_PER_WRITE = 50;
/** Writes of one turn. */
const WRITES_PER_TURN = 5;
export const WORDS_PER_TURN = WORDS_PER_WRITE * WRITES_PER_TURN;
/** Messages that came since the turn before up to which a turn makes all its writes. With more, sends come first: it makes one. */
const QUIET_MESSAGES = 50;

/**
 * Makes the chore that adds words to their index: of changed messages, of new ones, and then of those from before the index.
 * Any number of processes may run it, and a turn that fails is repeated.
 */
export function indexWords(deps: Contents): () => Promise<void> {
  const { db } = deps;
  let hasPieces = true;
  let before: number | null = null;
  return async () => {
    const { newest } = await wordProgress(db);
    const isQuiet = (before ?? newest) - newest <= QUIET_MESSAGES;
    before = newest;
    const added = await indexSome(deps, isQuiet ? WRITES_PER_TURN : 1);
    hasPieces ||= added > 0;
    if (!isQuiet || added > QUIET_MESSAGES) return;
    if (hasPieces) hasPieces = await mergePieces(db, "message_words");
  };
}

async function indexSome(deps: Contents, writes: number): Promise<number> {
  let added = 0;
  let left = writes;
  for (const waiting of [changedWords, newWords, oldWords])
    for (; left > 0; left--) {
      const found = await waiting(deps.db, WORDS_PER_WRITE);
      await addWords(deps.db, found, await wordsOfAll(deps, found));
      added += found.rows.length;
      if (found.rows.length < WORDS_PER_WRITE) break;
    }
  return added;
}

async function wordsOfAll(deps: Contents, { rows }: WordsWaiting): Promise<Set<string>[]> {
  const all: Set<string>[] = [];
  for (const row of rows) {
    all.push(row.removed === 1 ? new Set() : wordsOf(await readTexts(deps, row)));
    // Reads of a file are synchronous, so other requests are served between two messages.
    await yieldToEventLoop();
  }
  return all;
}

function wordsOf({ subject, fileNames, bodies }: MessageTexts): Set<string> {
  return new Set([subject, ...fileNames, ...bodies].flatMap((text) => wordsIn(text).map(({ word }) => word)));
}
