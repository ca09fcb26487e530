import { setBounded } from "../../core/collections.ts";

/** Maximum bytes of a URL in UTF-8. A longer one is not tracked: clients and proxies may cut the address. */
export const MAX_TRACKED_URL_BYTES = 2048;
/** Maximum characters of an attribute: each byte of a URL may be written as a reference such as `&#x26;`. */
export const MAX_ATTRIBUTE_CHARS = 6 * MAX_TRACKED_URL_BYTES;

/** Named references that occur in URLs. */
const NAMED: ReadonlyMap<string, string> = new Map([
  ["amp", "&"],
  ["AMP", "&"],
  ["lt", "<"],
  ["LT", "<"],
  ["gt", ">"],
  ["GT", ">"],
  ["quot", '"'],
  ["QUOT", '"'],
  ["apos", "'"],
]);

/** Names that are references without a semicolon, too (HTML §13.5, those without one). */
const WITHOUT_SEMICOLON: ReadonlySet<string> = new Set(
  `AElig AMP Aacute Acirc Agrave Aring Atilde Auml COPY Ccedil ETH Eacute Ecirc Egrave Euml GT Iacute Icirc Igrave
  Iuml LT Ntilde Oacute Ocirc Ograve Oslash Otilde Ouml QUOT REG THORN Uacute Ucirc Ugrave Uuml Yacute aacute acirc
  acute aelig agrave amp aring atilde auml brvbar ccedil cedil cent copy curren deg divide eacute ecirc egrave eth
  euml frac12 frac14 frac34 gt iacute icirc iexcl igrave iquest iuml laquo lt macr micro middot nbsp not ntilde oacute
  ocirc ograve ordf ordm oslash otilde ouml para plusmn pound quot raquo reg sect shy sup1 sup2 sup3 szlig thorn times
  uacute ucirc ugrave uml uuml yacute yen yuml`.split(/\s+/),
);

/** A character reference: hexadecimal, decimal, or a name and the sign after it. */
const REFERENCE = /&(?:#[xX]([0-9a-fA-F]+);?|#([0-9]+);?|([A-Za-z][A-Za-z0-9]*)(?:(;)|(?=(=))|))/g;

/**
 * Returns the value of an attribute from its source (HTML §13.2.5.72 to 80). Null if we do not know a reference in it: a link that we
 * misread would lead to a wrong page, and one that we leave alone works.
 */
export function decodeAttribute(source: string): string | null {
  if (!source.includes("&")) return source;
  let known = true;
  const value = source.replace(REFERENCE, (whole, hex, decimal, name, semicolon, equals) => {
    const char =
      name === undefined
        ? numbered(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16))
        : named(whole, name, semicolon !== undefined, equals !== undefined);
    known &&= char !== null;
    return char ?? "";
  });
  return known ? value : null;
}

/** Returns the character of a number; null if HTML replaces it by another one (§13.2.5.80). */
function numbered(code: number): string | null {
  const replaced = code === 0 || (code >= 0x80 && code <= 0x9f) || (code >= 0xd800 && code <= 0xdfff);
  return replaced || code > 0x10ffff ? null : String.fromCodePoint(code);
}

/** Returns the character of a name. Before `=` and without a semicolon it is a parameter, as in `?a=1&copy=2` (§13.2.5.73). */
function named(whole: string, name: string, closed: boolean, beforeEquals: boolean): string | null {
  if (!closed && (beforeEquals || !WITHOUT_SEMICOLON.has(name))) return whole;
  return NAMED.get(name) ?? null;
}

/** Web addresses by the source of their `href`: the messages of a mailing have the same links. */
const addresses = new Map<string, string | null>();
/** Maximum number of sources kept, and characters of one. */
const MAX_KNOWN = 1000;
const MAX_KNOWN_CHARS = 512;

/** Returns the web address in the source of an `href`; null if a redirect must not lead to it or we cannot read it for sure. */
export function hrefUrl(source: string): string | null {
  if (source.length > MAX_KNOWN_CHARS) return readHref(source);
  const known = addresses.get(source);
  if (known !== undefined) return known;
  const url = readHref(source);
  setBounded(addresses, source, url, MAX_KNOWN);
  return url;
}

function readHref(source: string): string | null {
  if (source.length > MAX_ATTRIBUTE_CHARS) return null;
  const value = decodeAttribute(source);
  if (value === null) return null;
  const url = stripSpace(value);
  return isTrackableUrl(url) ? url : null;
}

/** Removes the ASCII white space around a string in linear time, which `/ +$/` does not have. */
function stripSpace(value: string): string {
  const isSpace = (at: number): boolean => "\t\n\f\r ".includes(value.charAt(at));
  let from = 0;
  let to = value.length;
  while (from < to && isSpace(from)) from++;
  while (to > from && isSpace(to - 1)) to--;
  return value.slice(from, to);
}

/**
 * Returns whether a redirect may lead to the URL. It must be absolute, http or https, and within the limit. It has no control characters:
 * a browser drops those within `java\nscript:`, and they split header fields. It has no user information, because a password
 * must not get into events.
 */
export function isTrackableUrl(url: string): boolean {
  if (!/^https?:\/\/[^/\\]/i.test(url) || /[\x00-\x1f\x7f-\x9f]/.test(url)) return false;
  if (Buffer.byteLength(url) > MAX_TRACKED_URL_BYTES) return false;
  const parsed = URL.parse(url);
  if (parsed === null || (parsed.protocol !== "http:" && parsed.protocol !== "https:")) return false;
  return (
    parsed.username === "" && parsed.password === "" && !/^[^/?#\\]*@/.test(url.slice(url.indexOf("//") + 2))
  );
}

/** Returns the URL for a `Location` field (RFC 9110 §10.2.2): unchanged if it is ASCII, otherwise percent-encoded. */
export function locationOf(url: string): string {
  return /^[\x21-\x7e]+$/.test(url) ? url : new URL(url).href;
}
