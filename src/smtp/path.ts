import { isAsciiText } from "../core/ascii.ts";
import { isIPv4, isIPv6 } from "node:net";
import { MAX_ADDRESS_OCTETS, MAX_LOCAL_OCTETS, normalizeDomain, splitAddress } from "../core/addresses.ts";

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

/** The local part in its shortest form: quotes that are not needed go, as both forms name one mailbox (§4.1.2). */
function localPart(text: string): string | null {
  if (splitAddress(`${text}@${SOME_DOMAIN}`) !== null) return text;
  const content = QUOTED.exec(text)?.[1]?.replace(/\\(.)/gs, "$1");
  if (content === undefined || Buffer.byteLength(content) > MAX_LOCAL_OCTETS) return null;
  if (splitAddress(`${content}@${SOME_DOMAIN}`) !== null) return content;
  return `"${content.replace(/["\\]/g, "\\$&")}"`;
}

function parseMailbox(text: string): Path | null {
  // Nearly every mailbox is one that needs no quotes, at a domain.
  if (!text.endsWith(".") && splitAddress(text) !== null) return pathOf(text);
  // A quoted local part may hold "@", a domain or literal never does.
  const at = text.lastIndexOf("@");
  const domain = text.slice(at + 1);
  const local = at < 1 ? null : localPart(text.slice(0, at));
  if (local === null || !(isDomain(domain) || isAddressLiteral(domain))) return null;
  const address = `${local}@${domain}`;
  if (Buffer.byteLength(address) > MAX_ADDRESS_OCTETS) return null;
  return pathOf(address);
}

function pathOf(address: string): Path {
  return { address, beyondAscii: !isAsciiText(address) };
}

function parsePath(inner: string): Path | null {
  if (Buffer.byteLength(inner) > MAX_PATH_OCTETS) return null;
  const mailbox = withoutSourceRoute(inner);
  return mailbox === null ? null : parseMailbox(mailbox);
}

/** What stands between the brackets of MAIL FROM; null where it is malformed. */
export function parseReversePath(inner: string): Path | null {
  return inner === "" ? { address: "", beyondAscii: false } : parsePath(inner);
}

/** What stands between the brackets of RCPT TO; null where it is malformed. `Postmaster` may lack a domain (§4.1.1.3). */
export function parseForwardPath(inner: string): Path | null {
  return /^postmaster$/i.test(inner) ? { address: inner, beyondAscii: false } : parsePath(inner);
}
