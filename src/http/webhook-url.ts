import { isIP } from "node:net";
import { invalid } from "../core/errors.ts";

const MAX_URL_CHARS = 2048;

export interface WebhookUrlRules {
  /** Whether an IP address belongs to the public internet. */
  isPublicAddress: (ip: string) => boolean;
  /** Lets URLs be http and addresses private; for development. */
  allowPrivate: boolean;
}

function isLocalName(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost");
}

/**
 * A webhook's URL, normalized. A literal private address is refused here; a name is resolved and checked at each
 * attempt, since what it resolves to may change (server-side request forgery, DNS rebinding).
 * @throws AppError 422
 */
export function webhookUrl(text: string, rules: WebhookUrlRules): string {
  if (text.length > MAX_URL_CHARS) throw invalid("url", `At most ${MAX_URL_CHARS} characters.`);
  if (!URL.canParse(text)) throw invalid("url", "This is not a URL.");
  const url = new URL(text);
  if (url.protocol !== "https:" && !(rules.allowPrivate && url.protocol === "http:"))
    throw invalid("url", "A webhook's URL must start with https://.");
  // They would be sent to whoever answers there, and be shown in every list.
  if (url.username !== "" || url.password !== "")
    throw invalid("url", "A webhook's URL must not hold a user name or password.");
  // The URL parser has brought every spelling of an IPv4 address (0x7f.1, 2130706433) to four decimal numbers.
  const host = url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  const refused = isIP(host) === 0 ? isLocalName(host) : !rules.isPublicAddress(host);
  if (refused && !rules.allowPrivate) throw invalid("url", "A webhook's URL must have a public host.");
  return url.href;
}
