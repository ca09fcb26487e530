/**
 * Returns a text with each run of white space as one space. Servers break their lines anywhere, so a phrase is only
 * found if its words are on one line.
 */
export function folded(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
