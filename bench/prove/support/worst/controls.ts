/** Readers that are at fault on purpose: a run that does not find them proves nothing. */
import { threadMs } from "../thread-time.ts";
import { casesOf, filled, type WorstCase } from "./worst-case.ts";

const MOST_OCTETS = 64 * 1024;
const SPIN_MS = 2200;
/** Bytes that the wasteful reader takes for each pair of pieces. */
const PIECE_OCTETS = 1024;

/** Compares each byte with each: its time grows with the square. */
function pairs(text: string): number {
  let found = 0;
  for (let one = 0; one < text.length; one++)
    for (let other = one; other < text.length; other++)
      if (text.charCodeAt(one) !== text.charCodeAt(other)) found++;
  return found;
}

/** Is slow with its largest input alone, as one that falls off a cliff. */
function spins(text: string): void {
  if (text.length < MOST_OCTETS) return;
  for (const until = threadMs() + SPIN_MS; threadMs() < until; );
}

/** Keeps a copy of the text for each of its pieces: its memory grows with the square. */
function copies(text: string): number {
  const kept: Uint8Array[] = [];
  for (let at = 0; at < text.length; at += PIECE_OCTETS) kept.push(new Uint8Array(text.length).fill(1));
  return kept.length;
}

const text = (octets: number): string => filled("a", octets);

/** Each must be found to be at fault. */
export const CONTROLS: readonly WorstCase[] = [
  ...casesOf("control", MOST_OCTETS, pairs, { "time of a square": text }),
  ...casesOf("control", MOST_OCTETS, spins, { "held at its largest": text }),
  ...casesOf("control", 10 * MOST_OCTETS, copies, { "memory of a square": text }),
];
