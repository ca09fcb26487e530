import { isAsciiText } from "../core/ascii.ts";
import { isIPv4, isIPv6 } from "node:net";
import {
  isAtom,
  MAX_ADDRESS_OCTETS,
  MAX_LOCAL_OCTETS,
  normalizeDomain,
  splitAddress,
} from "../core/addresses.ts";

/** A reverse-path or forward-path (RFC 5321 §4.1.2) without brackets and source route. */
export interface Path {
  /** `local@domain` or `local@[literal]`; "" is the null reverse-path, `Postmaster` alone has no domain. */
  address: string;
  /** Whether it holds a character beyond ASCII, which needs SMTPUTF8 (RFC 6531 §3.4). */
  beyondAscii: boolean;
}

/** The text between the brackets of a path, and what stands behind them. */
export interface BracketedPath {
  inner: string;
  rest: string;
}

/** RFC 5321 §4.5.3.1.3: octets of a path, source route included. */
const MAX_PATH_OCTETS = 1024;

/** What holds of the addresses of one kind of path. */
interface PathRules {
  maxLocalOctets: number;
  maxAddressOctets: number;
  /** Whether a local part without quotes may have dots at its ends and in a row. */
  anyDots: boolean;
}

const FORWARD: PathRules = {
  maxLocalOctets: MAX_LOCAL_OCTETS,
  maxAddressOctets: MAX_ADDRESS_OCTETS,
  anyDots: false,
};
/**
 * Nothing is ever sent to a reverse-path, so what other servers take need not be refused. Local parts that hold another
 * address (VERP, SRS) are often longer than 64 octets, and RFC 5321 §4.5.3.1 asks for no limits where they can be
 * avoided; some providers have given out mailboxes such as `a..b.`. With the longest domain it fits a line of a header.
 */
const REVERSE: PathRules = { maxLocalOctets: 512, maxAddressOctets: MAX_PATH_OCTETS, anyDots: true };

/** RFC 5321 §4.1.2 Quoted-string: printable ASCII, `"` and `\` behind a `\`; beyond ASCII by RFC 6531 §3.3. */
const QUOTED = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|[^\x00-\x9f\p{Z}\p{Cc}\p{Cf}\p{Cs}]|\\[\x20-\x7e])*)"$/u;
/** Any domain: lets a local part alone be held against the rules of a whole address. */
const SOME_DOMAIN = "d.example";

/** Splits `<path> rest` at the bracket that closes the path: one within a quoted string does not. */
export function splitBracketed(text: string): BracketedPath | null {
  const match = /^<((?:"(?:[^"\\]|\\.)*"|[^"<>])*)>(.*)$/s.exec(text);
  return match === null ? null : { inner: match[1] ?? "", rest: match[2] ?? "" };
}

/** An address literal with its brackets (RFC 5321 §4.1.3). `IPv6` is the one tag ever registered: others are none. */
function isAddressLiteral(text: string): boolean {
  if (!text.startsWith("[") || !text.endsWith("]")) return false;
  const inner = text.slice(1, -1);
  if (/^ipv6:/i.test(inner)) return !inner.includes("%") && isIPv6(inner.slice(5));
  return isIPv4(inner);
}

/** A domain of RFC 5321 §4.1.2: no final dot. Underscores are let through, since real senders have them. */
function isDomain(text: string): boolean {
  return !text.endsWith(".") && normalizeDomain(text) !== null;
}

/**
 * Drops a source route, `@one,@two:user@domain`: servers must accept it and should ignore it (RFC 5321 §3.3, App. C).
 * Null where it is malformed.
 */
function withoutSourceRoute(inner: string): string | null {
  if (!inner.startsWith("@")) return inner;
  const colon = inner.indexOf(":");
  const hops = inner.slice(0, colon).split(",");
  if (colon < 0 || !hops.every((hop) => hop.startsWith("@") && isDomain(hop.slice(1)))) return null;
  return inner.slice(colon + 1);
}

/** Whether the local part is atoms with dots, in the order that the rules want. */
function isUnquoted(text: string, { anyDots, maxLocalOctets }: PathRules): boolean {
  if (splitAddress(`${text}@${SOME_DOMAIN}`) !== null) return true;
  if (!anyDots || Buffer.byteLength(text) > maxLocalOctets) return false;
  const atoms = text.split(".").filter((atom) => atom !== "");
  return atoms.length > 0 && atoms.every(isAtom);
}

/** The local part in its shortest form: quotes that are not needed go, as both forms name one mailbox (§4.1.2). */
function localPart(text: string, rules: PathRules): string | null {
  if (isUnquoted(text, rules)) return text;
  const content = QUOTED.exec(text)?.[1]?.replace(/\\(.)/gs, "$1");
  if (content === undefined || Buffer.byteLength(content) > rules.maxLocalOctets) return null;
  if (splitAddress(`${content}@${SOME_DOMAIN}`) !== null) return content;
  return `"${content.replace(/["\\]/g, "\\$&")}"`;
}

function parseMailbox(text: string, rules: PathRules): Path | null {
  // Nearly every mailbox is one that needs no quotes, at a domain.
  if (!text.endsWith(".") && splitAddress(text) !== null) return pathOf(text);
  // A quoted local part may hold "@", a domain or literal never does.
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

/** What stands between the brackets of MAIL FROM; null where it is malformed. */
export function parseReversePath(inner: string): Path | null {
  return inner === "" ? { address: "", beyondAscii: false } : parsePath(inner, REVERSE);
}

/** What stands between the brackets of RCPT TO; null where it is malformed. `Postmaster` may lack a domain (§4.1.1.3). */
export function parseForwardPath(inner: string): Path | null {
  return /^postmaster$/i.test(inner) ? { address: inner, beyondAscii: false } : parsePath(inner, FORWARD);
}
