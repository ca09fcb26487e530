/** A piece of a help text: words, or code in a monospace font. */
export interface HelpPart {
  text: string;
  code: boolean;
  /** Its place in the text. */
  at: number;
}

/** Returns the pieces of a help text, which has code in backquotes. Links to other pages keep their words alone. */
export function helpParts(help: string): HelpPart[] {
  const words = help.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1");
  return words
    .split("`")
    .map((text, index) => ({ text, code: index % 2 === 1, at: index }))
    .filter(({ text }) => text !== "");
}
