import type { CheckedRule } from "./match.ts";

/** A rule that a message met, as its record shows it. */
export interface AppliedRule {
  id: string;
  name: string;
}

/** The decision of an inbox's rules about a message. */
export interface Ruling {
  archive: boolean;
  markRead: boolean;
  /** Null: the message is stored. */
  refusal: { how: "reject"; text: string } | { how: "drop" } | null;
  applied: AppliedRule[];
}

/** The ruling if no rule matches. */
export const NO_RULING: Ruling = { archive: false, markRead: false, refusal: null, applied: [] };

/** Adds up what the matching rules do. */
export function rulingOf(checked: readonly CheckedRule[]): Ruling {
  const matching = checked.filter(({ matched }) => matched).map(({ rule }) => rule);
  if (matching.length === 0) return NO_RULING;
  const { reject, drop } = matching.at(-1)?.then ?? {};
  return {
    archive: matching.some(({ then }) => then.archive === true),
    markRead: matching.some(({ then }) => then.markRead === true),
    refusal:
      reject === undefined ? (drop === true ? { how: "drop" } : null) : { how: "reject", text: reject },
    applied: matching.map(({ id, name }) => ({ id, name })),
  };
}
