import { AppError } from "../../core/errors.ts";
import { MethodNotAllowed } from "../routing/errors.ts";
import type { Route } from "../routing/route.ts";

/** Paths with their methods. */
export type RouteTable = readonly { pattern: RegExp; methods: readonly string[] }[];

function patternOf(path: string): RegExp {
  const source = path
    .split("/")
    .map((segment) => (segment.startsWith(":") ? "[^/]+" : segment.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")))
    .join("/");
  return new RegExp(`^${source}/?$`);
}

/** Returns the methods of every path. Throws if two routes are the same. */
export function routeTable(routes: readonly Route[]): RouteTable {
  const methods = new Map<string, Set<string>>();
  for (const { method, path } of routes) {
    const known = methods.get(path) ?? new Set();
    if (known.has(method)) throw new Error(`two routes for ${method} ${path}`);
    methods.set(path, known.add(method));
  }
  return [...methods].map(([path, set]) => ({
    pattern: patternOf(path),
    // A GET is also answered as HEAD (RFC 9110 §9.3.2).
    methods: [...(set.has("GET") ? set.add("HEAD") : set)].sort(),
  }));
}

/** Paths at which other services take a message: Postmark, SendGrid, Mailgun and SES. */
const FOREIGN_SEND = /^\/(?:email|v3\/mail\/send|v3\/[^/]+\/messages|v2\/email\/outbound-emails)\/?$/;
/** Bases at which a path may have been meant, with what speaks there. */
const BASES = [
  ["/v1", ""],
  ["/resend", " (for programs written for Resend)"],
] as const;

/** Returns why no route took the request: 405 if the path has other methods, else 404, which says what may have been meant. */
export function routeNotFound(table: RouteTable, method: string, path: string): AppError {
  const allow = methodsOf(table, path);
  // The router refused the path for another reason. A target such as `/v1/emails#x` is not a path (RFC 9112 §3.2).
  if (allow.size > 0 && !allow.has(method)) return new MethodNotAllowed(method, [...allow]);
  const wanted = FOREIGN_SEND.test(path) ? "/emails" : path;
  const meant = BASES.filter(([base]) => methodsOf(table, base + wanted).has(method)).map(
    ([base, speech]) => `${method} ${base}${wanted}${speech}`,
  );
  const list = path.startsWith("/resend/")
    ? "docs/migrate.md lists what Postrider serves of Resend's API."
    : "The paths of the API are at /docs.";
  const hint = meant.length === 0 ? list : `Try ${meant.join(" or ")}.`;
  return new AppError("not_found", `No such path. ${hint}`);
}

function methodsOf(table: RouteTable, path: string): ReadonlySet<string> {
  return new Set(table.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => methods));
}
