import { leftOut, MAX_TRANSCRIPT_LINES } from "../../core/transcripts.ts";

/** Lines kept of how a conversation began. */
const FIRST_LINES = MAX_TRANSCRIPT_LINES / 2;

/**
 * Adds lines to a transcript. `C:` is ours, `S:` the peer's, `*` what happened. How a long conversation began and how it ended say
 * most: one line in its middle stands for those that are too many.
 */
export function note(transcript: string[], ...lines: string[]): void {
  transcript.push(...lines);
  const tooMany = transcript.length - MAX_TRANSCRIPT_LINES;
  if (tooMany <= 0) return;
  const gone = transcript.splice(FIRST_LINES, tooMany + 1);
  transcript.splice(FIRST_LINES, 0, leftOut(gone));
}
