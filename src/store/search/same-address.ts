import { isAsciiText } from "../../core/ascii.ts";
import { foldCase } from "./folding.ts";
import type { Condition } from "./substring.ts";

/** Holds where a column has the address, in any case and however Unicode spells its accents (`foldCase`). */
export function isAddress(column: string, address: string): Condition {
  const folded = foldCase(address);
  // SQLite knows the case of ASCII alone.
  if (isAsciiText(folded)) return { sql: `${column} = ? COLLATE NOCASE`, args: [folded] };
  const patterns = addressPatterns(address);
  return { sql: `(${patterns.map(() => `${column} GLOB ?`).join(" OR ")})`, args: patterns };
}

/** Patterns of GLOB, one of which an address has that is the same as this one. */
export function addressPatterns(address: string): string[] {
  const folded = foldCase(address);
  const forms = [address, folded, folded.toUpperCase()].filter((form) => foldCase(form) === folded);
  const spelled = forms.flatMap((form) => [form.normalize("NFC"), form.normalize("NFD")]);
  return [...new Set(spelled.map((form) => Array.from(form, inEachCase).join("")))];
}

/** Characters of which the cases are remembered; finding them takes microseconds, and a mail may name fifty long addresses. */
const MAX_KNOWN = 2000;
const known = new Map<string, string>();

/** A character in its cases; what GLOB would take for more than a character, as itself. */
function inEachCase(char: string): string {
  const found = known.get(char) ?? casesOf(char);
  if (known.size < MAX_KNOWN) known.set(char, found);
  return found;
}

function casesOf(char: string): string {
  const folded = foldCase(char);
  // In one order, so that all forms of an address have the same pattern.
  const cases = [...new Set([char, char.toLowerCase(), char.toUpperCase()])]
    .filter((each) => Array.from(each).length === 1 && foldCase(each) === folded)
    .sort();
  return cases.length > 1 || "*?[".includes(char) ? `[${cases.join("")}]` : char;
}
