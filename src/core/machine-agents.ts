/** A request for a tracking picture or link, as far as it tells who made it. */
export interface Visit {
  method: string;
  /** The peer's IP address; null where the request came by no socket. */
  ip: string | null;
  /** The User-Agent field; null where there is none. */
  userAgent: string | null;
  /** The fields that announce a prefetch, joined; null where there is none. */
  purpose: string | null;
}

/** A visit within this time after the delivery is a scanner's: nobody reads that fast. Milliseconds. */
export const PREFETCH_WINDOW_MS = 5_000;

/** Characters of a User-Agent field that are looked at and kept. */
export const MAX_USER_AGENT_CHARS = 512;

/** Machines by the name they give themselves. A scanner that poses as a browser is told by its haste alone. */
const MACHINES: readonly RegExp[] = [
  // Apple Mail Privacy Protection loads every picture of a mail by its proxies, under this name and nothing more
  // (documentation.mailgun.com, "Open and Click Bot Detection").
  /^Mozilla\/5\.0$/,
  // Gmail's picture proxy: "... Firefox/11.0 (via ggpht.com GoogleImageProxy)" (the same page; scientiamobile.com,
  // "What is Google Image Proxy").
  /GoogleImageProxy/,
  // Yahoo's, whose name holds its page: help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html
  /YahooMailProxy/,
  // Previews of links that Microsoft's services make, under their own names.
  /BingPreview|SkypeUriPreview/,
  // Office asks what a link leads to before it opens it (stackoverflow.com/questions/8073908).
  /Microsoft Office (?:Protocol|Existence) Discovery/,
  // Gateways that name themselves (check.live-direct-marketing.online, "Bot clicks from security scanners"). Safe Links
  // and most others pose as browsers.
  /Barracuda|Proofpoint|Mimecast|IronPort|CiscoSecureEmail|TrendMicro|TMES|FortiGuard|FortiMail|Sophos/i,
  // Previews of links pasted into chats (suped.com, "How can I identify bot user agents in my email click data").
  /Slack-ImgProxy|facebookexternal|WhatsApp|Snap URL Preview/i,
  // Crawlers name themselves (RFC 9309 §2.2.1 has them do so), most by one of these words; CUBOT makes telephones.
  /(?<!cu)bot\b|Slackbot|crawl|spider|scanner|slurp|link ?check|preview/i,
  // Browsers that nobody sits at, under the names their makers give them.
  /HeadlessChrome|PhantomJS|Puppeteer|Playwright|Lighthouse/i,
  // HTTP libraries, under the names their makers give them. Not okhttp, CFNetwork and Dalvik: mail programs on telephones
  // use those (suped.com, as above).
  /^(?:curl|Wget|python|aiohttp|Go-http-client|Java|Apache-HttpClient|libwww-perl|Ruby|PHP|node|undici|axios|got)\b/i,
];

/** Apple's own network (17.0.0.0/8), where proxies of its mail stand. On a dual-stack listener it has the mapped form. */
const APPLE_NETWORK = /^(?:::ffff:)?17\.(?:\d{1,3}\.){2}\d{1,3}$/i;
/** An agent that names no browser: what stands behind the engine's own "(KHTML, like Gecko)" would. */
const NO_BROWSER = /^Mozilla\/5\.0(?: \([^()]*\) AppleWebKit\/[\d.]+ \(KHTML, like Gecko\))?$/;

/**
 * Whether a machine made the visit: a proxy, a scanner, a prefetch, rather than the recipient's own client.
 * @param sinceDelivery milliseconds since the mail was delivered; null where that is not known
 */
export function isMachine(visit: Visit, sinceDelivery: number | null): boolean {
  const agent = (visit.userAgent ?? "").slice(0, MAX_USER_AGENT_CHARS);
  return (
    // A HEAD fetches nothing that anybody could look at: link checkers send it.
    visit.method === "HEAD" ||
    (sinceDelivery !== null && sinceDelivery < PREFETCH_WINDOW_MS) ||
    // Sec-Purpose (Fetch standard) and what came before it: Purpose, X-Purpose and X-Moz.
    /\b(?:prefetch|preview|prerender)\b/i.test(visit.purpose ?? "") ||
    // Every browser and mail program names itself.
    agent === "" ||
    MACHINES.some((machine) => machine.test(agent)) ||
    (visit.ip !== null && APPLE_NETWORK.test(visit.ip) && NO_BROWSER.test(agent))
  );
}
