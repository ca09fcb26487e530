import { isTrackableUrl } from "./href.ts";
import { codesIn } from "./codes.ts";
import { type Link, MAX_SCANNED_CHARS, scanHtml } from "./html-scan.ts";

/** Maximum number of links of a message that are shown. */
export const MAX_LINKS = 100;

/** The links and codes of a message. */
export interface Extracts {
  /** In order, each address once. */
  links: Link[];
  /** Best first. */
  codes: string[];
}

/** Bodies of a message. */
export interface Texts {
  subject: string;
  html: string | null;
  text: string | null;
}

/**
 * Returns the links of a message and the codes that it asks its reader to enter. Links of the plain text come after those of the
 * html. It looks at the first MAX_SCANNED_CHARS of each text, in at most some
 * fifty milliseconds.
 */
export function extractsOf({ subject, html, text }: Texts): Extracts {
  const scanned = html === null ? { text: "", links: [] } : scanHtml(html);
  const plain = (text ?? "").slice(0, MAX_SCANNED_CHARS);
  const links = new Map<string, Link>();
  for (const link of [...scanned.links, ...textLinks(plain)]) {
    const known = links.get(link.url);
    // A picture and a button often have the same address.
    if (known === undefined && links.size < MAX_LINKS) links.set(link.url, link);
    else if (known !== undefined && known.text === "") known.text = link.text;
  }
  const codes = codesIn(subject, plain.trim() === "" ? scanned.text : plain);
  return {
    links: [...links.values()],
    codes: codes.length > 0 || plain.trim() === "" ? codes : codesIn(subject, scanned.text),
  };
}

/** Returns the web addresses in the first MAX_SCANNED_CHARS of a plain text. The sign after one may belong to the sentence. */
export function textLinks(text: string): Link[] {
  return [
    ...text.slice(0, MAX_SCANNED_CHARS).matchAll(/https?:\/\/[^\s<>"\u3000-\u303f\uff00-\uffef]{1,2048}/gi),
  ].flatMap(([found]) => {
    const url = withoutEnd(found);
    return isTrackableUrl(url) ? [{ url, text: url }] : [];
  });
}

function withoutEnd(found: string): string {
  const opens = found.includes("(");
  let end = found.length;
  for (; end > 0; end--) {
    const last = found[end - 1] ?? "";
    if (!(last === ")" && !opens) && !".,;:!?'*]}".includes(last)) break;
  }
  return found.slice(0, end);
}
