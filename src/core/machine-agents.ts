/** A request for a tracking pixel or link, with the fields that show who made it. */
export interface Visit {
  method: string;
  /** The peer's IP address. Null if the request did not come over a socket. */
  ip: string | null;
  /** The User-Agent field. Null if there is none. */
  userAgent: string | null;
  /** The fields that announce a prefetch, joined. Null if there are none. */
  purpose: string | null;
}

/** A visit this soon after the delivery is a scanner's, because no recipient reads that fast. Milliseconds. */
export const PREFETCH_WINDOW_MS = 5_000;

/** Maximum characters of a User-Agent field that are read and stored. */
export const MAX_USER_AGENT_CHARS = 512;

/** Machines by the name that they give themselves. If a scanner poses as a browser, only its speed shows it. */
const MACHINES: readonly RegExp[] = [
  // Apple Mail Privacy Protection loads every picture through proxies, with only this name
  // (documentation.mailgun.com, "Open and Click Bot Detection").
  /^Mozilla\/5\.0$/,
  // Gmail's picture proxy: "... Firefox/11.0 (via ggpht.com GoogleImageProxy)" (the same page; scientiamobile.com,
  // "What is Google Image Proxy").
  /GoogleImageProxy/,
  // Yahoo's proxy, whose name contains its page: help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html
  /YahooMailProxy/,
  // Microsoft's services, when they make link previews under their own names.
  /BingPreview|SkypeUriPreview/,
  // Office checks a link before it opens it (stackoverflow.com/questions/8073908).
  /Microsoft Office (?:Protocol|Existence) Discovery/,
  // Gateways that name themselves (check.live-direct-marketing.online, "Bot clicks from security scanners"). Safe
  // Links and most other gateways pose as browsers.
  /Barracuda|Proofpoint|Mimecast|IronPort|CiscoSecureEmail|TrendMicro|TMES|FortiGuard|FortiMail|Sophos/i,
  // Previews of links pasted into chats (suped.com, "How can I identify bot user agents in my email click data").
  /Slack-ImgProxy|facebookexternal|WhatsApp|Snap URL Preview/i,
  // Crawlers name themselves (RFC 9309 §2.2.1 requires it), most with one of these words. CUBOT makes telephones.
  /(?<!cu)bot\b|Slackbot|crawl|spider|scanner|slurp|link ?check|preview/i,
  // Browsers without a user, under the names that their makers give them.
  /HeadlessChrome|PhantomJS|Puppeteer|Playwright|Lighthouse/i,
  // HTTP libraries, under the names that their makers give them. okhttp, CFNetwork and Dalvik are not listed, because
  // mail programs on telephones use them (suped.com, as above).
  /^(?:curl|Wget|python|aiohttp|Go-http-client|Java|Apache-HttpClient|libwww-perl|Ruby|PHP|node|undici|axios|got)\b/i,
];

/** Apple's own network (17.0.0.0/8), which has its mail proxies. A dual-stack listener shows the mapped form. */
const APPLE_NETWORK = /^(?:::ffff:)?17\.(?:\d{1,3}\.){2}\d{1,3}$/i;
/** An agent that names no browser. A browser's name would come after the engine's own "(KHTML, like Gecko)". */
const NO_BROWSER = /^Mozilla\/5\.0(?: \([^()]*\) AppleWebKit\/[\d.]+ \(KHTML, like Gecko\))?$/;

/**
 * Returns whether a machine made the visit, such as a proxy, a scanner or a prefetch, and not the recipient's own
 * client.
 * @param sinceDelivery milliseconds since the message was delivered; null if that is not known
 */
export function isMachine(visit: Visit, sinceDelivery: number | null): boolean {
  const agent = (visit.userAgent ?? "").slice(0, MAX_USER_AGENT_CHARS);
  return (
    // Link checkers send HEAD. It fetches nothing that a reader could see.
    visit.method === "HEAD" ||
    (sinceDelivery !== null && sinceDelivery < PREFETCH_WINDOW_MS) ||
    // Sec-Purpose (Fetch standard), and its predecessors Purpose, X-Purpose and X-Moz.
    /\b(?:prefetch|preview|prerender)\b/i.test(visit.purpose ?? "") ||
    // Every browser and mail program names itself.
    agent === "" ||
    MACHINES.some((machine) => machine.test(agent)) ||
    (visit.ip !== null && APPLE_NETWORK.test(visit.ip) && NO_BROWSER.test(agent))
  );
}
