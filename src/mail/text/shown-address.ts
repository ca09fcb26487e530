import { hasKnownSuffix } from "../../core/public-suffix.ts";
import { MAX_SCANNED_LINKS, scanHtml } from "./html-scan.ts";

/** Maximum number of characters before the end of a link that are searched for its text. */
const TEXT_WINDOW = 512;
/** A sign of an address: a dot or an at sign within a word, which may be written as a reference. */
const ADDRESS_SIGN = /(?:[.@]|&#(?:0*(?:46|64)|x0*(?:2e|40)))\S/i;
/** A word that is a web address wherever it stands. */
const WEB_ADDRESS = /^[("'<[]*(?:https?:\/\/|www\.)\S/i;
/** A host, with or without user, port and path. */
const HOST = /^(?:[^\s@/]+@)?((?:[\p{L}\p{N}_-]{1,63}\.)+[\p{L}\p{N}-]{2,63})\.?(?:[:/?#]\S*)?$/u;

/**
 * Returns whether a reader takes the text of a link for an address. Programs and filters warn if such a link leads to
 * another host.
 */
export function isShownAddress(text: string): boolean {
  const words = text.split(/\s+/).filter((word) => word !== "");
  if (words.some((word) => WEB_ADDRESS.test(word))) return true;
  const [only = ""] = words;
  const host = words.length === 1 ? HOST.exec(only.replace(/^[("'<[]+|[)"'>\],;!]+$/g, ""))?.[1] : undefined;
  return host !== undefined && hasKnownSuffix(host);
}

/** Returns a function that says whether the text of a link is an address. Call it for each link of the html, in order. */
export function shownAddresses(html: string): (url: string) => boolean {
  if (!mayShowAddress(html)) return () => false;
  const byUrl = new Map<string, boolean[]>();
  for (const { url, text } of scanHtml(html).links) {
    const of = byUrl.get(url) ?? [];
    of.push(isShownAddress(text));
    byUrl.set(url, of);
  }
  return (url) => byUrl.get(url)?.shift() ?? false;
}

/** Returns whether the end of a link's text looks like an address. Few messages have one, and the scan takes longer than this. */
function mayShowAddress(html: string): boolean {
  const end = /<\/a/gi;
  for (let links = 0; links < MAX_SCANNED_LINKS && end.test(html); links++) {
    const at = end.lastIndex - "</a".length;
    const window = html.slice(Math.max(0, at - TEXT_WINDOW), at);
    if (ADDRESS_SIGN.test(textOf(window.slice(window.lastIndexOf("<a") + 1)))) return true;
  }
  return false;
}

/** Returns the text after a link's start tag, which has lost its "<". Few links have other tags within them. */
function textOf(link: string): string {
  const start = link.indexOf(">");
  const hasTags = link.includes("<") || link.lastIndexOf(">") !== start;
  return hasTags ? link.replace(/^[^<>]*>|<[^<>]*>/g, "") : link.slice(start + 1);
}
