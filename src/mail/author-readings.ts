import { MAX_DOMAIN_OCTETS, normalizeDomain } from "../core/addresses.ts";
import { toHeaderField } from "./reading/header-block.ts";
import { MAX_ADDRESS_FIELD_CHARS, mailboxes } from "./reading/parse.ts";
import type { RawField } from "./reading/raw-headers.ts";

/** The authors of a mail as a record is made of them. */
export interface ShownAuthors {
  /** The values of its From fields, joined. */
  text: string;
  /** The addresses in that. */
  addresses: string[];
}

/** Reads them from the From fields among those of its header, of which it should have one. */
export function shownAuthors(fields: readonly RawField[]): ShownAuthors {
  const values = fields.filter(({ name }) => name === "from").map((field) => toHeaderField(field).value);
  const text = values.join(", ").slice(0, MAX_ADDRESS_FIELD_CHARS);
  return { text, addresses: addressesIn(text) };
}

/**
 * The addresses of a mail's From by each way of reading it that gives others: as records show it, first, without the
 * comments and spaces that may stand within an address (RFC 5322 §4.4), and as `another` reader has it. One program takes
 * `a@bank(x).example` for an address of bank.example, the next for one of bank: a forger must not choose whose policy is
 * asked.
 */
export function authorReadings({ text, addresses }: ShownAuthors, another: string[]): string[][] {
  const bare = withoutComments(text);
  const readings = [addresses, bare === text ? addresses : addressesIn(bare), another];
  const keys = readings.map((reading) => reading.join().toLowerCase());
  return readings.filter((_, at) => keys.indexOf(keys[at] ?? "") === at);
}

/**
 * The domain of the author that a record shows, who is the sender where the mail names none; null where it shows none.
 * It is found in text that is no address, too, as a person who reads it finds it: in `<a..b@bank.example>`, or with
 * letters of full width. Of several authors the first is shown, and the others are not.
 */
export function shownAuthorDomain({ addresses }: ShownAuthors, mailFrom: string): string | null {
  const [author = mailFrom] = addresses;
  const at = author.lastIndexOf("@");
  if (at < 0) return null;
  const text = author.slice(at + 1, at + 1 + 2 * MAX_DOMAIN_OCTETS);
  return normalizeDomain(text.replace(/[^\p{L}\p{N}]+$/u, ""));
}

function addressesIn(text: string): string[] {
  return mailboxes(text).map(({ email }) => email);
}

/** Without comments, quotes left open, and the spaces around dots and at signs, outside quoted strings. */
function withoutComments(value: string): string {
  const kept: string[] = [];
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < value.length; at++) {
    const char = value.charAt(at);
    const escapes = char === "\\";
    const piece = escapes ? value.slice(at, at + 2) : char;
    if (escapes) at++;
    if (depth > 0 || (!quoted && char === "(")) depth += char === "(" ? 1 : char === ")" ? -1 : 0;
    else if (quoted || char === '"') {
      const ends: boolean = quoted && char === '"';
      quoted = !ends && (quoted || value.includes('"', at + 1));
      // A quote that nothing closes begins no string.
      if (quoted || ends) kept.push(piece);
    } else pushAtom(kept, piece);
  }
  return kept.join("");
}

function pushAtom(kept: string[], piece: string): void {
  const glues = (other: string | undefined): boolean => other === "." || other === "@";
  if (glues(piece)) while (/^\s$/.test(kept.at(-1) ?? "")) kept.pop();
  if (!/^\s$/.test(piece) || !glues(kept.at(-1))) kept.push(piece);
}
