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

/** A character in its cases; what GLOB would take for more than a character, as itself. */
function inEachCase(char: string): string {
  const folded = foldCase(char);
  const cases = [...new Set([char, char.toLowerCase(), char.toUpperCase()])].filter(
    (each) => Array.from(each).length === 1 && foldCase(each) === folded,
  );
  return cases.length > 1 || "*?[".includes(char) ? `[${cases.join("")}]` : char;
}
