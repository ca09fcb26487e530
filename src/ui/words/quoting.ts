/** Maximum number of lines of a message that a reply quotes. Longer ones are cut. */
const MAX_QUOTED_LINES = 500;

interface Quoted {
  /** Name or address of the writer. */
  from: string;
  /** When it was written, in words. */
  at: string;
  text: string;
}

/** Returns a message as a reply quotes it: a line that names the writer, then each line after `> ` (RFC 3676 §4.5). */
export function quote({ from, at, text }: Quoted): string {
  const lines = text.replaceAll("\r\n", "\n").trimEnd().split("\n");
  const shown = lines
    .slice(0, MAX_QUOTED_LINES)
    .map((line) => (line.startsWith(">") ? `>${line}` : `> ${line}`.trimEnd()));
  if (lines.length > MAX_QUOTED_LINES) shown.push("> […]");
  return `On ${at}, ${from} wrote:\n${shown.join("\n")}`;
}
