/**
 * The beginning of a text, `most` UTF-16 units at most, fit to be stored and sent: half of a surrogate pair, as a cut through a
 * character leaves it, is U+FFFD.
 */
export function firstChars(text: string, most: number): string {
  return text.slice(0, most).toWellFormed();
}
