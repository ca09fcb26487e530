import { domainToASCII } from "node:url";

/** RFC 5321 §4.5.3.1.1: octets of a local part. */
export const MAX_LOCAL_OCTETS = 64;
/** RFC 5321 §4.5.3.1.3 less the angle brackets: octets of an address. */
export const MAX_ADDRESS_OCTETS = 254;
/** RFC 1035 §2.3.4: octets of a domain name in text form. */
export const MAX_DOMAIN_OCTETS = 253;

/** What is said of a text that should be an address that mail can be sent to, and is none. */
export const NO_ADDRESS = "This is not an email address.";

/** An address that mail can be sent to, in its two parts. */
export interface SplitAddress {
  local: string;
  /** Lower case, A-labels. */
  domain: string;
}

/** An address with an optional display name, as in a header field. */
export interface Mailbox {
  email: string;
  name?: string | undefined;
}

/** atext of RFC 5322 §3.2.3, and any character beyond ASCII that is no control, space or format (RFC 6531 §3.3). */
const ATOM = /^(?:[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]|[^\x00-\x9f\p{Z}\p{Cc}\p{Cf}\p{Cs}])+$/u;
/** A dot-atom in ASCII, as most are: the classes above take ten times as long. */
const PLAIN_DOT_ATOM = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
/** Two labels or more in lower case, the last with a letter in front: a domain name as most are given, and as it stays. */
const PLAIN_DOMAIN = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

function octets(text: string): number {
  return Buffer.byteLength(text, "utf8");
}

/** Whether the text is one atom: what stands between the dots of a local part that needs no quotes. */
export function isAtom(text: string): boolean {
  return ATOM.test(text);
}

/**
 * A domain name in lower-case A-labels (IDNA, UTS 46); null where it is none: empty, too long, a bad label,
 * an address literal, or all digits in its last label.
 */
export function normalizeDomain(text: string): string | null {
  if (text.length <= MAX_DOMAIN_OCTETS && PLAIN_DOMAIN.test(text)) return text;
  if (text.length > MAX_DOMAIN_OCTETS || /[\s\x00-\x1f\x7f:/@?#%\\[\]]/.test(text)) return null;
  const bare = text.endsWith(".") ? text.slice(0, -1) : text;
  // domainToASCII reads "0x7f.1" as an IPv4 address; such a name is refused by its last label below.
  const ascii = /^[\x21-\x7e]+$/.test(bare) ? bare.toLowerCase() : domainToASCII(bare).toLowerCase();
  if (ascii.length > MAX_DOMAIN_OCTETS) return null;
  const labels = ascii.split(".");
  if (!labels.every((label) => LABEL.test(label))) return null;
  if (/^(?:[0-9]+|0x[0-9a-f]*)$/.test(labels[labels.length - 1] ?? "")) return null;
  return ascii;
}

/** Local part and domain of an address; null where it is not one a mail can be sent to (dot-atom local part). */
export function splitAddress(email: string): SplitAddress | null {
  const at = email.lastIndexOf("@");
  if (at < 1 || octets(email) > MAX_ADDRESS_OCTETS) return null;
  const local = email.slice(0, at);
  if (octets(local) > MAX_LOCAL_OCTETS) return null;
  if (!PLAIN_DOT_ATOM.test(local) && !local.split(".").every(isAtom)) return null;
  const domain = normalizeDomain(email.slice(at + 1));
  // A-labels may be several times as long as what was typed, and are what goes out.
  if (domain === null || octets(local) + 1 + domain.length > MAX_ADDRESS_OCTETS) return null;
  return { local, domain };
}

/** The address with its domain in A-labels, the local part as given; null where it is none. */
export function normalizeAddress(email: string): string | null {
  const split = splitAddress(email);
  return split === null ? null : `${split.local}@${split.domain}`;
}

/**
 * What an address is known by in lists (suppressions, contacts, inboxes): all lower case, and in the one form of a letter
 * that Unicode can spell in two ways (NFC, RFC 6532 §3.1). Who is typed `é` in one program is `e` with an accent in another.
 */
export function addressKey(email: string): string {
  return oneSpelling(normalizeAddress(email) ?? email);
}

/** A text as keys spell it; of an address that `normalizeAddress` gave, its key. */
export function oneSpelling(email: string): string {
  return email.normalize("NFC").toLowerCase();
}

/** The inbox part of a local part: `user+anything` is `user` (subaddressing, RFC 5233), as in keys. */
export function inboxLocalPart(local: string): string {
  const plus = local.indexOf("+");
  return oneSpelling(plus > 0 ? local.slice(0, plus) : local);
}

/** Whether `name` is `parent` or a name below it. Both in lower-case A-labels. */
export function isWithin(name: string, parent: string): boolean {
  return name === parent || name.endsWith(`.${parent}`);
}
