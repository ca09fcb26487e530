import { decodeAttribute, hrefUrl } from "./href.ts";

/** A link of a message, with the text that a reader clicks. */
export interface Link {
  url: string;
  text: string;
}

/** The text that an html shows, and its links in order. */
export interface ScannedHtml {
  text: string;
  links: Link[];
  /** What its first words are: plain text, those of a link, or the alternative text of a picture. Null if it has no words. */
  lead: Lead | null;
}

export type Lead = "text" | "link" | "picture";

/** Maximum characters of html that are scanned. */
export const MAX_SCANNED_CHARS = 256 * 1024;
/** Maximum number of links that are noted. */
export const MAX_SCANNED_LINKS = 500;
/** Maximum characters of a link's text. */
export const MAX_LINK_TEXT_CHARS = 200;

/** Elements whose content is no text for the reader. */
const HIDDEN: ReadonlySet<string> = new Set(["style", "script", "title", "template", "noscript", "svg"]);
/** Elements within a line. All others begin a new one. */
const INLINE: ReadonlySet<string> = new Set(
  "a abbr b bdi big cite code em font i img ins kbd label mark q s small span strong sub sup td th tt u".split(
    " ",
  ),
);
/** Elements of a row, whose contents have a space between. */
const CELLS: ReadonlySet<string> = new Set(["td", "th"]);
const TAG_NAME = /^<(\/?)([a-z][a-z0-9]*)/i;
const HREF = /\shref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/i;
const ALT = /\salt\s*=\s*(?:"([^"]*)"|'([^']*)')/i;
/** Maximum characters of a tag that are searched for attributes. */
const MAX_TAG_CHARS = 16 * 1024;

interface Scan {
  text: string[];
  links: Link[];
  /** The link that is open, and where its text begins. */
  open: { url: string; from: number; alt: string } | null;
  lead: Lead | null;
}

/** Reads the text and the links of html in one pass over it. It is no parser: what it misreads, it shows as text. */
export function scanHtml(html: string): ScannedHtml {
  const source = html.slice(0, MAX_SCANNED_CHARS);
  const lower = source.toLowerCase();
  const scan: Scan = { text: [], links: [], open: null, lead: null };
  for (let at = 0; at < source.length; ) {
    const start = source.indexOf("<", at);
    const text = decoded(source.slice(at, start < 0 ? undefined : start).replace(/\s+/g, " "));
    scan.text.push(text);
    if (text.trim() !== "") scan.lead ??= scan.open === null ? "text" : "link";
    if (start < 0) break;
    at = afterTag(source, lower, start, scan);
  }
  closeLink(scan);
  return { text: tidy(scan.text.join("")), links: scan.links, lead: scan.lead };
}

/** Handles the tag or comment that begins there. Returns where the text continues. */
function afterTag(source: string, lower: string, start: number, scan: Scan): number {
  if (source.startsWith("<!--", start)) return endOf(source, "-->", start);
  const end = endOf(source, ">", start);
  const tag = source.slice(start, Math.min(end, start + MAX_TAG_CHARS));
  const [, slash = "", given = ""] = TAG_NAME.exec(tag) ?? [];
  const name = given.toLowerCase();
  if (name === "") return end;
  if (slash === "" && HIDDEN.has(name)) return endOf(source, ">", endOf(lower, `</${name}`, end));
  if (CELLS.has(name)) scan.text.push(" ");
  else if (!INLINE.has(name)) scan.text.push("\n");
  if (name === "a" || name === "area") {
    closeLink(scan);
    if (slash === "") openLink(scan, tag);
  }
  if (name === "img") readImage(scan, decoded(attribute(tag, ALT)));
  if (name === "area") closeLink(scan);
  return end;
}

function endOf(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from);
  return at < 0 ? text.length : at + mark.length;
}

function attribute(tag: string, pattern: RegExp): string {
  const [, double, single, bare] = pattern.exec(tag) ?? [];
  return double ?? single ?? bare ?? "";
}

function readImage(scan: Scan, alt: string): void {
  if (alt.trim() !== "") scan.lead ??= "picture";
  if (scan.open !== null) scan.open.alt ||= alt;
}

function openLink(scan: Scan, tag: string): void {
  const url = hrefUrl(attribute(tag, HREF));
  if (url !== null && scan.links.length < MAX_SCANNED_LINKS)
    scan.open = { url, from: scan.text.length, alt: decoded(attribute(tag, ALT)) };
}

function closeLink(scan: Scan): void {
  if (scan.open === null) return;
  const { url, from, alt } = scan.open;
  const shown = scan.text.slice(from).join("").replace(/\s+/g, " ").trim();
  scan.links.push({ url, text: (shown || alt.trim()).slice(0, MAX_LINK_TEXT_CHARS) });
  scan.open = null;
}

/** Returns the text of html source. A space that does not break is a space, and characters without width are none. */
function decoded(source: string): string {
  const spaced = source.replace(/&nbsp;?|&#160;/g, " ").replace(/&(?:zwnj|zwj|shy|#8203|#8204|#847);/g, "");
  return (decodeAttribute(spaced) ?? spaced).replace(/[\u200b-\u200d\u00ad\ufeff]|\u034f/g, "");
}

/** Returns the text without spaces at the ends of lines, and without empty lines. */
function tidy(text: string): string {
  return text
    .replace(/[^\S\n]+/g, " ")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join("\n");
}
