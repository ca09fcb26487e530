import { isIP } from "node:net";
import { normalizeDomain } from "../../core/addresses.ts";
import { invalid } from "../../core/errors.ts";

/** Maximum characters of a webhook's URL. */
export const MAX_URL_CHARS = 2048;

const FOR_DEVELOPMENT =
  "For development, run postrider listen, or set ALLOW_PRIVATE_WEBHOOKS=1, which allows http and private addresses.";

export interface WebhookUrlRules {
  /** Returns whether a webhook may use an IP address. */
  mayReach: (ip: string, allowPrivate: boolean) => boolean;
  /** Allows http URLs and private addresses, for development. */
  allowPrivate: boolean;
}

function isLocalName(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost");
}

/**
 * Returns a webhook's URL, normalized. Refuses a literal private address. A name is resolved and checked at each
 * attempt, because its addresses may change (server-side request forgery, DNS rebinding).
 * @throws AppError 422
 */
export function webhookUrl(text: string, rules: WebhookUrlRules): string {
  if (text.length > MAX_URL_CHARS) throw invalid("url", `must have at most ${MAX_URL_CHARS} characters.`);
  if (!URL.canParse(text)) throw invalid("url", 'must be a URL, such as "https://example.com/webhooks".');
  const url = new URL(text);
  if (url.protocol !== "https:" && !(rules.allowPrivate && url.protocol === "http:"))
    throw invalid("url", `must start with https://. ${FOR_DEVELOPMENT}`);
  // Port 0 cannot be connected to (RFC 6335 §6).
  if (url.port === "0") throw invalid("url", "must have a port from 1 to 65535.");
  // The endpoint would receive the password, and every list would show it.
  if (url.username !== "" || url.password !== "")
    throw invalid("url", "must not contain a user name or password.");
  // The URL parser turns every spelling of an IPv4 address (0x7f.1, 2130706433) into four decimal numbers.
  const host = url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  if (isIP(host) === 0 && normalizeDomain(host) === null)
    throw invalid("url", 'must have a valid host name, such as "https://example.com/webhooks".');
  const refused =
    isIP(host) === 0 ? isLocalName(host) && !rules.allowPrivate : !rules.mayReach(host, rules.allowPrivate);
  if (refused) throw invalid("url", `must have a host with a public address. ${FOR_DEVELOPMENT}`);
  return url.href;
}
