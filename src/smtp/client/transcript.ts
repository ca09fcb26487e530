/** Lines kept of one delivery: many hosts that all fail must not fill the record. */
export const MAX_TRANSCRIPT_LINES = 200;

/** Adds a line to a transcript that has room still. `C:` is ours, `S:` the peer's, `*` what happened. */
export function note(transcript: string[], line: string): void {
  if (transcript.length < MAX_TRANSCRIPT_LINES) transcript.push(line);
}
