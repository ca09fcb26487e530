import { isAsciiText } from "../../core/text.ts";
import { foldCase } from "./folding.ts";
import type { Condition } from "./substring.ts";

/**
 * Returns the condition that a column has the address, in any case and with any Unicode spelling of its accents
 * (`foldCase`).
 */
export function isAddress(column: string, address: string): Condition {
  const folded = foldCase(address);
  // SQLite knows the case of ASCII only.
  if (isAsciiText(folded)) return { sql: `${column} = ? COLLATE NOCASE`, args: [folded] };
  const patterns = addressPatterns(address);
  return { sql: `(${patterns.map(() => `${column} GLOB ?`).join(" OR ")})`, args: patterns };
}

/** Returns GLOB patterns, one of which matches each spelling of the address. */
export function addressPatterns(address: string): string[] {
  const folded = foldCase(address);
  const forms = [address, folded, folded.toUpperCase()].filter((form) => foldCase(form) === folded);
  const spelled = forms.flatMap((form) => [form.normalize("NFC"), form.normalize("NFD")]);
  return [...new Set(spelled.map((form) => Array.from(form, inEachCase).join("")))];
}

/**
 * Maximum number of characters whose cases are cached. Finding them takes microseconds, and a message may name
 * fifty long addresses.
 */
const MAX_KNOWN = 2000;
const known = new Map<string, string>();

/** Returns a pattern for a character in its cases. GLOB's special characters match themselves. */
function inEachCase(char: string): string {
  const found = known.get(char) ?? casesOf(char);
  if (known.size < MAX_KNOWN) known.set(char, found);
  return found;
}

function casesOf(char: string): string {
  const folded = foldCase(char);
  // Sorted, so that all forms of an address have the same pattern.
  const cases = [...new Set([char, char.toLowerCase(), char.toUpperCase()])]
    .filter((each) => Array.from(each).length === 1 && foldCase(each) === folded)
    .sort();
  return cases.length > 1 || "*?[".includes(char) ? `[${cases.join("")}]` : char;
}
