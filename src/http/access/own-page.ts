import type { TSchema } from "@sinclair/typebox";
import { AppError } from "../../core/errors.ts";
import type { RouteText } from "../routing/route.ts";

/** The dashboard's scripts send it with the value `1`. Pages of other origins cannot (CORS). */
export const UI_HEADER = "X-Postrider-UI";

const READS: ReadonlySet<string> = new Set(["GET", "HEAD"]);

/** Values of `Sec-Fetch-Site` of a request that a page of ours or the user made (Fetch Metadata). */
const OWN_SITES: ReadonlySet<string> = new Set(["same-origin", "none"]);

const FOREIGN = "A page of another origin may not use the dashboard's session.";

type Loading = Pick<RouteText<string, TSchema, TSchema>, "browserLoads">;

/**
 * Checks that a request with a session's cookie was made by our own page (CSRF). Browsers add the cookie by
 * themselves, so it does not show which page has asked.
 * @throws AppError 403 if it was another page, or if the request does not show it
 */
export function requireOwnPage(request: Request, { browserLoads }: Loading, publicUrl: string): void {
  const { method, headers } = request;
  const origin = headers.get("origin");
  if (origin !== null && !isOwnOrigin(origin, hostOf(request), publicUrl))
    throw refuse(`${FOREIGN} If this is the dashboard, set PUBLIC_URL to its address.`, "Origin");
  if (browserLoads === true) {
    const site = headers.get("sec-fetch-site");
    if (site !== null && !OWN_SITES.has(site)) throw refuse(FOREIGN, "Sec-Fetch-Site");
    return;
  }
  if (headers.get(UI_HEADER) !== "1")
    throw refuse(`A request with the dashboard's session needs ${UI_HEADER}: 1.`, UI_HEADER);
  if (origin === null && !READS.has(method))
    throw refuse("A request that writes with the dashboard's session needs an Origin.", "Origin");
}

/**
 * Returns whether the origin is this service's: that of PUBLIC_URL, or any with the host of the request. A proxy
 * may speak https for us, so the scheme counts only at the host of PUBLIC_URL.
 */
function isOwnOrigin(origin: string, host: string, publicUrl: string): boolean {
  const ours = URL.parse(publicUrl);
  const asking = URL.parse(origin);
  if (asking === null) return false;
  return asking.origin === ours?.origin || (asking.host === host && host !== ours?.host);
}

/** Names and addresses that no page can make lead to this service (DNS rebinding): those that no zone answers for. */
const FIXED_HOST = /^(?:localhost|[\d.]+|\[[\da-f:.]+\])$/;

/**
 * Checks the Origin of a request to a route with `ownOrigin`, as the MCP specification demands of servers over HTTP.
 * @throws AppError 403 if a page of another origin has made the request. A page that reached this service by DNS
 *   rebinding names its own host, so only the host of PUBLIC_URL and fixed ones count.
 */
export function requireOwnOrigin(request: Request, publicUrl: string): void {
  const origin = request.headers.get("origin");
  if (origin === null) return;
  const asking = URL.parse(origin);
  if (asking !== null && asking.origin === URL.parse(publicUrl)?.origin) return;
  if (asking !== null && asking.host === hostOf(request) && FIXED_HOST.test(asking.hostname)) return;
  throw refuse(
    "A page of another origin may not use this path. If it is ours, set PUBLIC_URL to its address.",
    "Origin",
  );
}

function hostOf(request: Request): string {
  return new URL(request.url, "http://localhost").host;
}

/** Returns whether the page of the request was loaded over https. */
export function isSecurePage({ headers }: Request): boolean {
  return headers.get("origin")?.startsWith("https:") === true;
}

function refuse(message: string, param: string): AppError {
  return new AppError("permission_error", message, { param });
}
