import { isIP } from "node:net";
import { timeLeft, within } from "../core/clock.ts";
import { isPublicAddress } from "./address-guard.ts";
import {
  endpointOf,
  exchangeHttp,
  type HttpDeps,
  type HttpEndpoint,
  type HttpOutcome,
} from "./http-exchange.ts";
import type { HttpResponse } from "./http-response.ts";
import { resolveAddresses } from "./dns/lookups.ts";
import type { Resolver } from "./dns/resolver.ts";

/** Addresses of one host tried for one request. */
const MAX_TRIED_ADDRESSES = 3;
/** Time one address has to take the connection; less where the request itself has less. */
const CONNECT_TIMEOUT_MS = 5000;

export interface GuardedDeps extends HttpDeps {
  resolver: Resolver;
}

export interface GuardedRequest {
  url: string;
  /** Besides Host, Content-Length and Connection, which are set here. */
  headers: Readonly<Record<string, string>>;
  /** Null: the request is a GET; else it is a POST of these octets. */
  body: string | Uint8Array | null;
  /** Octets of the answer's body that are read; 4 KiB where not given. */
  maxBodyOctets?: number;
  /** For all of it: lookup, connection, request and answer. */
  timeoutMs: number;
  /** Lets the URL be http and its address a private one; for development. */
  allowPrivate: boolean;
}

/** What came of a request. */
export type GuardedOutcome =
  /** `whole`: the body was read to its end, as its framing tells, or to the limit. */
  { kind: "answered"; response: HttpResponse; whole: boolean } | { kind: "failed"; reason: string };

interface Target extends HttpEndpoint {
  url: URL;
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const OWN_HEADERS = new Set(["host", "content-length", "connection", "transfer-encoding"]);

/**
 * Puts a request to a URL that a stranger chose. The host is looked up once, its addresses are checked, and the
 * connection goes to a checked address (no DNS rebinding), with the host's name in Host and for the certificate.
 * Redirects are not followed: a 3xx is an answer like any other. Never throws.
 */
export async function requestGuarded(deps: GuardedDeps, request: GuardedRequest): Promise<GuardedOutcome> {
  const target = targetOf(request);
  if (typeof target === "string") return { kind: "failed", reason: target };
  const head = requestHead(target, request);
  if (head === null) return { kind: "failed", reason: "a header cannot be sent" };
  const left = timeLeft(deps.clock, request.timeoutMs);
  const looking = addressesOf(deps, target, request.allowPrivate);
  const addresses = await within(deps.clock, request.timeoutMs, looking, "timeout");
  if (typeof addresses === "string") return { kind: "failed", reason: addresses };
  const octets = Buffer.concat([Buffer.from(head, "latin1"), Buffer.from(request.body ?? "")]);
  return sendTo(deps, target, addresses, { octets, maxBodyOctets: request.maxBodyOctets, left });
}

/** The URL taken apart, or why it may not be asked. */
function targetOf(request: GuardedRequest): Target | string {
  if (!URL.canParse(request.url)) return "not a URL";
  const url = new URL(request.url);
  if (url.protocol !== "https:" && !(request.allowPrivate && url.protocol === "http:"))
    return "the URL must be https";
  if (url.username !== "" || url.password !== "") return "the URL must not hold credentials";
  const endpoint = endpointOf(url);
  return endpoint.host === "" ? "the URL names no host" : { url, ...endpoint };
}

/** The head of the request; null where a header would break out of its line (header injection). */
function requestHead(target: Target, request: GuardedRequest): string | null {
  const given = Object.entries(request.headers).filter(([name]) => !OWN_HEADERS.has(name.toLowerCase()));
  if (!given.every(([name, value]) => TOKEN.test(name) && FIELD_VALUE.test(value))) return null;
  const { body } = request;
  const lines = [
    `${body === null ? "GET" : "POST"} ${target.url.pathname}${target.url.search} HTTP/1.1`,
    `Host: ${target.url.host}`,
    ...given.map(([name, value]) => `${name}: ${value}`),
    ...(body === null ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]),
    "Connection: close",
  ];
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** The checked addresses of the host, or why there is none. */
async function addressesOf(
  deps: GuardedDeps,
  target: Target,
  allowPrivate: boolean,
): Promise<string[] | string> {
  const { host } = target;
  const addresses = isIP(host) !== 0 ? [host] : await lookUp(deps.resolver, host);
  if (typeof addresses === "string") return addresses;
  const allowed = allowPrivate ? addresses : addresses.filter(isPublicAddress);
  return allowed.length > 0 ? allowed.slice(0, MAX_TRIED_ADDRESSES) : `${host} has no public address`;
}

async function lookUp(resolver: Resolver, host: string): Promise<string[] | string> {
  const found = await resolveAddresses(resolver, host);
  if (found.status === "ok") return [...found.records];
  return found.status === "failure" ? `lookup of ${host}: ${found.reason}` : `${host} has no address`;
}

interface Sending {
  octets: Buffer;
  maxBodyOctets: number | undefined;
  /** Milliseconds that are left of its time. */
  left: () => number;
}

/** Tries the addresses in turn. Once a connection stood there is no second try: the request may have been taken. */
async function sendTo(
  deps: GuardedDeps,
  { port, tlsName }: Target,
  addresses: readonly string[],
  { octets, maxBodyOctets, left }: Sending,
): Promise<GuardedOutcome> {
  let failure = "timeout";
  for (const ip of addresses) {
    const timeoutMs = left();
    if (timeoutMs === 0) break;
    const connectTimeoutMs = Math.min(CONNECT_TIMEOUT_MS, timeoutMs);
    const request = { ip, port, tlsName, octets, maxBodyOctets, timeoutMs, connectTimeoutMs };
    const outcome: HttpOutcome = await exchangeHttp(deps, request);
    if (outcome.kind === "answered") return outcome;
    failure = outcome.reason;
    if (outcome.connected) break;
  }
  return { kind: "failed", reason: failure };
}
