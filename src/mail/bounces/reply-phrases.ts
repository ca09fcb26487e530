import text from "./phrases.txt" with { type: "text" };

/** The subject of a refusal. */
export type ReplyCategory =
  | ("recipient" | "mailbox-full" | "policy" | "reputation")
  | ("authentication" | "rate" | "greylist")
  | ("content" | "infrastructure" | "protocol" | "other");

/** Patterns with one meaning. */
export interface PhraseGroup {
  outcome: "hard" | "soft" | "failed";
  category: ReplyCategory;
  /** Set if the words name no reason, such as "rejected": a code that names the mailbox is more specific. */
  vague?: true;
  /** Set if the words fit both a missing mailbox and a rule: then a policy code decides. */
  unlessPolicy?: true;
  /** Set if the words mean "later", even after a code that means "never". */
  later?: true;
  patterns: readonly RegExp[];
}

let groups: readonly PhraseGroup[] | null = null;

/** Returns the groups of `phrases.txt`, which explains its form. The first one that matches counts. */
export function textRules(): readonly PhraseGroup[] {
  groups ??= patternGroups(text).map(({ head, patterns }) => ({ ...groupOf(head), patterns }));
  return groups;
}

/**
 * Reads groups of patterns from a text file: a line for the head of each, then a line for each pattern, with a tab before
 * its note. Empty lines and those that begin with a number sign are comments.
 */
export function patternGroups(lines: string, flags = ""): { head: string; patterns: readonly RegExp[] }[] {
  const read: { head: string; patterns: RegExp[] }[] = [];
  for (const line of lines.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const [pattern = "", note] = line.split("\t");
    if (note === undefined) read.push({ head: line, patterns: [] });
    else read.at(-1)?.patterns.push(new RegExp(pattern, flags));
  }
  return read;
}

/** Reads the first line of a group, such as `[failed policy vague]`. */
function groupOf(line: string): Omit<PhraseGroup, "patterns"> {
  const [, outcome, category, mark] =
    /^\[(hard|soft|failed) ([a-z-]+)(?: (vague|unlessPolicy|later))?\]$/.exec(line) ?? [];
  if (outcome === undefined) throw new Error(`phrases.txt has an unknown line: ${line}`);
  const group = { outcome, category } as Pick<PhraseGroup, "outcome" | "category">;
  return mark === undefined ? group : { ...group, [mark]: true };
}
