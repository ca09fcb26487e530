import { MAX_DOMAIN_OCTETS, normalizeDomain } from "../../core/addresses.ts";
import { toHeaderField } from "../reading/header-block.ts";
import { MAX_ADDRESS_FIELD_CHARS, mailboxes } from "../reading/parse.ts";
import type { RawField } from "../reading/raw-headers.ts";

/** The authors of a message as its record has them. */
export interface ShownAuthors {
  /** The values of its From fields, joined. */
  text: string;
  addresses: string[];
}

/** Reads the authors from the From fields of a header, which should have one. */
export function shownAuthors(fields: readonly RawField[]): ShownAuthors {
  const values = fields.filter(({ name }) => name === "from").map((field) => toHeaderField(field).value);
  const text = values.join(", ").slice(0, MAX_ADDRESS_FIELD_CHARS);
  return { text, addresses: addressesIn(text) };
}

/**
 * Returns the addresses of a From by each way of reading it that gives different ones. The first is that of records. The second leaves out
 * comments and spaces within an address (RFC 5322 §4.4), and the third is `another` reader's. One program reads
 * `a@bank(x).example` as an address of bank.example, another one as an address of bank. A forger must not choose between them.
 */
export function authorReadings({ text, addresses }: ShownAuthors, another: string[]): string[][] {
  const bare = withoutComments(text);
  const readings = [addresses, bare === text ? addresses : addressesIn(bare), another];
  const keys = readings.map((reading) => reading.join().toLowerCase());
  return readings.filter((_, at) => keys.indexOf(keys[at] ?? "") === at);
}

/**
 * Returns the domain of the author that a record shows, or null. If the mail names no author, the record shows the sender; of several
 * authors it shows the first. The domain is also found in text that is no address, as a person finds it: in `<a..b@bank.example>`,
 * or in letters of full width.
 */
export function shownAuthorDomain({ addresses }: ShownAuthors, mailFrom: string): string | null {
  const [author = mailFrom] = addresses;
  const at = author.lastIndexOf("@");
  if (at < 0) return null;
  const text = author.slice(at + 1, at + 1 + 2 * MAX_DOMAIN_OCTETS);
  return normalizeDomain(text.replace(/[^\p{L}\p{N}]+$/u, ""));
}

/**
 * Returns whether each address has an author domain. A domain literal publishes no policy. A `%` route
 * (`ann%bank.example@relay.example`) shows one domain to a person and another one to a program.
 */
export function haveDomains(addresses: readonly string[]): boolean {
  return addresses.every((address) => {
    const at = address.lastIndexOf("@");
    return !address.includes("[", at + 1) && !address.slice(0, Math.max(0, at)).includes("%");
  });
}

function addressesIn(text: string): string[] {
  return mailboxes(text).map(({ email }) => email);
}

/** Leaves out comments, open quotes, and the spaces around dots and at signs outside quoted strings. */
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
      // An open quote does not begin a string.
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
