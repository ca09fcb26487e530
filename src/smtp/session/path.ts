import { isAsciiText } from "../../core/text.ts";
import { isIPv4, isIPv6 } from "node:net";
import {
  isAtom,
  isDotAtom,
  MAX_ADDRESS_OCTETS,
  normalizeDomain,
  splitAddress,
} from "../../core/addresses.ts";

/** A reverse-path or forward-path (RFC 5321 §4.1.2) without brackets and source route. */
export interface Path {
  /** `local@domain` or `local@[literal]`; "" is the null reverse-path. Only `Postmaster` has no domain. */
  address: string;
  /** True if a character is not ASCII, which requires SMTPUTF8 (RFC 6531 §3.4). */
  beyondAscii: boolean;
}

/** The text between the brackets of a path, and the text after them. */
export interface BracketedPath {
  inner: string;
  rest: string;
}

/** RFC 5321 §4.5.3.1.3: octets of a path, source route included. */
const MAX_PATH_OCTETS = 1024;

/** Limits for the addresses of one kind of path. */
interface PathRules {
  maxLocalOctets: number;
  maxAddressOctets: number;
  /** If true, an unquoted local part may begin or end with dots, or have several in a row. */
  anyDots: boolean;
}

const FORWARD: PathRules = {
  maxLocalOctets: MAX_ADDRESS_OCTETS,
  maxAddressOctets: MAX_ADDRESS_OCTETS,
  anyDots: false,
};
/**
 * We never send to a reverse-path, so we accept what other servers accept. Local parts that hold another address (VERP,
 * SRS) are often long. Some providers have mailboxes such as `a..b.`. With the longest domain, the address still fits a
 * header line.
 */
const REVERSE: PathRules = { maxLocalOctets: 512, maxAddressOctets: MAX_PATH_OCTETS, anyDots: true };

/** RFC 5321 §4.1.2 Quoted-string: printable ASCII, with `"` and `\` escaped by `\`; beyond ASCII, RFC 6531 §3.3. */
const QUOTED = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|[^\x00-\x9f\p{Z}\p{Cc}\p{Cf}\p{Cs}]|\\[\x20-\x7e])*)"$/u;

/** Splits `<path> rest` at the closing bracket. Brackets in a quoted string do not count. */
export function splitBracketed(text: string): BracketedPath | null {
  const match = /^<((?:"(?:[^"\\]|\\.)*"|[^"<>])*)>(.*)$/s.exec(text);
  return match === null ? null : { inner: match[1] ?? "", rest: match[2] ?? "" };
}

/** Checks an address literal with brackets (RFC 5321 §4.1.3). `IPv6` is the only registered tag. */
function isAddressLiteral(text: string): boolean {
  if (!text.startsWith("[") || !text.endsWith("]")) return false;
  const inner = text.slice(1, -1);
  if (/^ipv6:/i.test(inner)) return !inner.includes("%") && isIPv6(inner.slice(5));
  return isIPv4(inner);
}

/** Checks a domain (RFC 5321 §4.1.2): no final dot. Underscores are accepted, because real senders use them. */
function isDomain(text: string): boolean {
  return !text.endsWith(".") && normalizeDomain(text) !== null;
}

/**
 * Removes a source route, `@one,@two:user@domain`: servers must accept it and should ignore it (RFC 5321 §3.3, App. C).
 * @returns null if it is malformed
 */
function withoutSourceRoute(inner: string): string | null {
  if (!inner.startsWith("@")) return inner;
  const colon = inner.indexOf(":");
  const hops = inner.slice(0, colon).split(",");
  if (colon < 0 || !hops.every((hop) => hop.startsWith("@") && isDomain(hop.slice(1)))) return null;
  return inner.slice(colon + 1);
}

/** Checks that the local part is atoms with dots, placed as the rules allow. */
function isUnquoted(text: string, { anyDots, maxLocalOctets }: PathRules): boolean {
  if (Buffer.byteLength(text) > maxLocalOctets) return false;
  if (isDotAtom(text)) return true;
  if (!anyDots) return false;
  const atoms = text.split(".").filter((atom) => atom !== "");
  return atoms.length > 0 && atoms.every(isAtom);
}

/** Returns the local part without needless quotes, since both forms name one mailbox (§4.1.2). */
function localPart(text: string, rules: PathRules): string | null {
  if (isUnquoted(text, rules)) return text;
  const content = QUOTED.exec(text)?.[1]?.replace(/\\(.)/gs, "$1");
  if (content === undefined || Buffer.byteLength(content) > rules.maxLocalOctets) return null;
  if (isDotAtom(content)) return content;
  return `"${content.replace(/["\\]/g, "\\$&")}"`;
}

function parseMailbox(text: string, rules: PathRules): Path | null {
  // The usual case: no quotes needed, and a domain.
  if (!text.endsWith(".") && splitAddress(text) !== null) return pathOf(text);
  // A quoted local part may contain "@"; a domain or literal never does.
  const at = text.lastIndexOf("@");
  const domain = text.slice(at + 1);
  const local = at < 1 ? null : localPart(text.slice(0, at), rules);
  if (local === null || !(isDomain(domain) || isAddressLiteral(domain))) return null;
  const address = `${local}@${domain}`;
  if (Buffer.byteLength(address) > rules.maxAddressOctets) return null;
  return pathOf(address);
}

function pathOf(address: string): Path {
  return { address, beyondAscii: !isAsciiText(address) };
}

function parsePath(inner: string, rules: PathRules): Path | null {
  if (Buffer.byteLength(inner) > MAX_PATH_OCTETS) return null;
  const mailbox = withoutSourceRoute(inner);
  return mailbox === null ? null : parseMailbox(mailbox, rules);
}

/** Parses the text between the brackets of MAIL FROM. Returns null if it is malformed. */
export function parseReversePath(inner: string): Path | null {
  return inner === "" ? { address: "", beyondAscii: false } : parsePath(inner, REVERSE);
}

/** Parses the path of RCPT TO; null if it is malformed. `Postmaster` needs no domain (§4.1.1.3). */
export function parseForwardPath(inner: string): Path | null {
  return /^postmaster$/i.test(inner) ? { address: inner, beyondAscii: false } : parsePath(inner, FORWARD);
}
