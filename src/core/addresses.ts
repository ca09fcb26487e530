import { domainToASCII, domainToUnicode } from "node:url";

/**
 * RFC 5321 §4.5.3.1.3 less the angle brackets: octets of an address. The local part has no limit besides: §4.5.3.1
 * asks to avoid such limits, and services answer at addresses with more than the 64 octets of §4.5.3.1.1.
 */
export const MAX_ADDRESS_OCTETS = 254;
/** RFC 1035 §2.3.4: octets of a domain name in text form. */
export const MAX_DOMAIN_OCTETS = 253;

/** Error message for a string that is not a deliverable address. */
export const ADDRESS_EXPECTED = 'must be an email address, such as "ana@example.com".';

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

/** Returns a mailbox with its display name, for people to read: `Ana <ana@example.com>`. */
export function mailboxText({ email, name }: Mailbox): string {
  return name === undefined || name === "" ? email : `${name} <${email}>`;
}

/**
 * An atext of RFC 5322 §3.2.3, or a character beyond ASCII that is not a control, space or format character (RFC 6531
 * §3.3).
 */
const ATOM = /^(?:[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]|[^\x00-\x9f\p{Z}\p{Cc}\p{Cf}\p{Cs}])+$/u;
/**
 * A dot-atom in ASCII. It is tried first, because most addresses match it and the classes above take ten times as
 * long.
 */
const PLAIN_DOT_ATOM = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
/**
 * Two labels or more in lower case, the last of which begins with a letter. This matches most domain names, which
 * then need no change.
 */
const PLAIN_DOMAIN = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

function octets(text: string): number {
  return Buffer.byteLength(text, "utf8");
}

/** Returns whether the text is one atom, which is the text between two dots of an unquoted local part. */
export function isAtom(text: string): boolean {
  return ATOM.test(text);
}

/** Returns whether a local part is atoms with single dots between them. */
export function isDotAtom(local: string): boolean {
  return PLAIN_DOT_ATOM.test(local) || local.split(".").every(isAtom);
}

/**
 * Returns a domain name in lower-case A-labels (IDNA, UTS 46). Returns null if it is empty, too long, an address
 * literal, has a bad label, or has only digits in its last label.
 */
export function normalizeDomain(text: string): string | null {
  if (text.length <= MAX_DOMAIN_OCTETS && PLAIN_DOMAIN.test(text)) return text;
  if (text.length > MAX_DOMAIN_OCTETS || /[\s\x00-\x1f\x7f:/@?#%\\[\]]/.test(text)) return null;
  const bare = text.endsWith(".") ? text.slice(0, -1) : text;
  // domainToASCII reads "0x7f.1" as an IPv4 address. The check of the last label below refuses such a name.
  const ascii = /^[\x21-\x7e]+$/.test(bare) ? bare.toLowerCase() : domainToASCII(bare).toLowerCase();
  if (ascii.length > MAX_DOMAIN_OCTETS) return null;
  const labels = ascii.split(".");
  if (!labels.every((label) => LABEL.test(label))) return null;
  const top = labels[labels.length - 1] ?? "";
  // Underscores are for names that are not hosts (RFC 8552). A top-level domain has none.
  if (/^(?:[0-9]+|0x[0-9a-f]*)$/.test(top) || top.includes("_")) return null;
  return ascii;
}

/** An encoded word. RFC 2047 §5 forbids it in an address: some programs decode it and show another address. */
const ENCODED_WORD = /=\?[^?]*\?[bq]\?.*\?=/i;

/**
 * Splits an address into local part and domain. Returns null if no mail can be sent to it. The local part must be a
 * dot-atom without an encoded word.
 */
export function splitAddress(email: string): SplitAddress | null {
  const at = email.lastIndexOf("@");
  if (at < 1 || octets(email) > MAX_ADDRESS_OCTETS) return null;
  const local = email.slice(0, at);
  if (!isDotAtom(local) || (local.includes("=?") && ENCODED_WORD.test(local))) return null;
  const domain = normalizeDomain(email.slice(at + 1));
  // The A-labels may be several times as long as the text, and they are what is sent.
  if (domain === null || octets(local) + 1 + domain.length > MAX_ADDRESS_OCTETS) return null;
  return { local, domain };
}

/**
 * Returns the address with its domain in A-labels and its local part unchanged. Returns null if it is not an address.
 */
export function normalizeAddress(email: string): string | null {
  const split = splitAddress(email);
  return split === null ? null : `${split.local}@${split.domain}`;
}

/** Returns the address with its domain as people write it: `ana@bücher.example` for `ana@xn--bcher-kva.example`. */
export function readableAddress(email: string): string {
  const domain = email.lastIndexOf("@") + 1;
  return email.includes("xn--", domain)
    ? email.slice(0, domain) + domainToUnicode(email.slice(domain))
    : email;
}

/** Returns part of an address or domain with the labels of its domain as they are stored, or null if this is the same. */
export function withALabels(part: string): string | null {
  if (/^[\x00-\x7f]*$/.test(part) || /\s/.test(part)) return null;
  const domain = part.lastIndexOf("@") + 1;
  const labels = part
    .slice(domain)
    .split(".")
    .map((label) => domainToASCII(label) || label);
  const stored = part.slice(0, domain) + labels.join(".");
  return stored === part ? null : stored;
}

/**
 * Returns the form of an address that lists compare (suppressions, contacts, inboxes): in lower case and in NFC (RFC
 * 6532 §3.1). Unicode can spell `é` in two ways, and NFC has one.
 */
export function addressKey(email: string): string {
  return spellingKey(normalizeAddress(email) ?? email);
}

/** Returns the key of a value that a client gives; null if the value is no address. */
export function keyOfAddress(given: unknown): string | null {
  return typeof given === "string" && normalizeAddress(given) !== null ? addressKey(given) : null;
}

/** Returns the spelling that keys use. For the result of `normalizeAddress`, that is its key. */
export function spellingKey(email: string): string {
  return email.normalize("NFC").toLowerCase();
}

/**
 * Returns the part of a local part that names the inbox: `user` for `user+anything` (subaddressing, RFC 5233). In the
 * spelling of keys.
 */
export function inboxLocalPart(local: string): string {
  const plus = local.indexOf("+");
  return spellingKey(plus > 0 ? local.slice(0, plus) : local);
}

/** The local part of a catch-all inbox, which takes the mail for every address of its domain that is no other mailbox. */
export const ANY_LOCAL_PART = "*";

/** Returns the address of the catch-all inbox that takes the mail for an address. */
export function catchAllOf(address: string): string {
  return ANY_LOCAL_PART + address.slice(address.lastIndexOf("@"));
}

/** Returns whether an inbox's address is that of a catch-all. */
export function isCatchAll(inboxAddress: string): boolean {
  return inboxAddress.startsWith(`${ANY_LOCAL_PART}@`);
}

/** Returns whether `name` is `parent` or a name below it. Both must be in lower-case A-labels. */
export function isWithin(name: string, parent: string): boolean {
  return name === parent || name.endsWith(`.${parent}`);
}

/** Returns the names above a name, the longest first. */
export function namesAbove(name: string): string[] {
  const labels = name.split(".");
  return labels.slice(1).map((_, at) => labels.slice(at + 1).join("."));
}

/**
 * Returns the name directly below `parent` that is at or above a name below it: `b.example.com` for `a.b.example.com` and
 * `example.com`. Null for `parent` itself and its wildcard.
 */
export function branchOf(name: string, parent: string): string | null {
  if (name === parent || name === `*.${parent}`) return null;
  const labels = name.slice(0, -parent.length - 1).split(".");
  return `${labels[labels.length - 1] ?? ""}.${parent}`;
}
