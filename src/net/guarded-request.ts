import { isIP } from "node:net";
import { remainingTime, within } from "../core/time/clock.ts";
import type { AddressGuard } from "./address-guard.ts";
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

/** Maximum number of addresses tried for one request. */
const MAX_TRIED_ADDRESSES = 3;
/** Time limit for connecting to one address, if the request has that much time left. */
const CONNECT_TIMEOUT_MS = 5000;

export interface GuardedDeps extends HttpDeps {
  resolver: Resolver;
  mayReach: AddressGuard;
}

export interface GuardedRequest {
  url: string;
  /** In addition to Host, Content-Length and Connection, which are set here. A list is sent as a field for each value. */
  headers: Readonly<Record<string, string | readonly string[]>>;
  /** Null for a GET; else the body of a POST, in pieces. */
  body: readonly Uint8Array[] | null;
  /** Octets read of the response body; 4 KiB if undefined. */
  maxBodyOctets?: number;
  /** For lookup, connection, request and response together. */
  timeoutMs: number;
  /** Allows http at public addresses. */
  allowHttp?: boolean;
  /** Allows http and private addresses; for development. */
  allowPrivate: boolean;
}

export type GuardedOutcome =
  /** `whole`: the body was read to its end by its framing, or to the limit. */
  { kind: "answered"; response: HttpResponse; whole: boolean } | { kind: "failed"; reason: string };

/** The end of the reason if the guard refuses each address of a host. */
export const NO_PUBLIC_ADDRESS = "has no public address";

interface Target extends HttpEndpoint {
  url: URL;
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const OWN_HEADERS = new Set(["host", "content-length", "connection", "transfer-encoding"]);

/**
 * Sends a request to a URL that a customer chose. Looks up the host once, checks its addresses, and connects to a checked
 * one, so DNS rebinding does not work. The Host header and the certificate use the host's name. Does not follow redirects.
 * Never throws.
 */
export async function requestGuarded(deps: GuardedDeps, request: GuardedRequest): Promise<GuardedOutcome> {
  const target = targetOf(request);
  if (typeof target === "string") return { kind: "failed", reason: target };
  const head = requestHead(target, request);
  if (head === null) return { kind: "failed", reason: "a header cannot be sent" };
  const left = remainingTime(deps.clock, request.timeoutMs);
  const looking = addressesOf(deps, target, request.allowPrivate);
  const addresses = await within(deps.clock, request.timeoutMs, looking, "timeout");
  if (typeof addresses === "string") return { kind: "failed", reason: addresses };
  const octets = joined([Buffer.from(head, "latin1"), ...(request.body ?? [])]);
  return sendTo(deps, target, addresses, { octets, maxBodyOctets: request.maxBodyOctets, left });
}

/** Up to this size, a request is joined and sent in one write. */
const MAX_JOINED_OCTETS = 32 * 1024;

/** Joins the pieces of a small request. The pieces of a large one may be shared, so they are not copied. */
function joined(pieces: readonly Uint8Array[]): readonly Uint8Array[] {
  return octetsOf(pieces) <= MAX_JOINED_OCTETS ? [Buffer.concat(pieces)] : pieces;
}

function octetsOf(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

/** Parses the URL. Returns the reason if it is not allowed. */
function targetOf(request: GuardedRequest): Target | string {
  if (!URL.canParse(request.url)) return "not a URL";
  const url = new URL(request.url);
  const allowsHttp = request.allowPrivate || request.allowHttp === true;
  if (url.protocol !== "https:" && !(allowsHttp && url.protocol === "http:")) return "the URL must be https";
  if (url.username !== "" || url.password !== "") return "the URL must not hold credentials";
  const endpoint = endpointOf(url);
  return endpoint.host === "" ? "the URL names no host" : { url, ...endpoint };
}

/** Returns the head of the request, or null if a header would break out of its line (header injection). */
function requestHead(target: Target, request: GuardedRequest): string | null {
  const given = Object.entries(request.headers)
    .filter(([name]) => !OWN_HEADERS.has(name.toLowerCase()))
    .flatMap(([name, values]) => [values].flat().map((value) => [name, value] as const));
  if (!given.every(([name, value]) => TOKEN.test(name) && FIELD_VALUE.test(value))) return null;
  const { body } = request;
  const lines = [
    `${body === null ? "GET" : "POST"} ${target.url.pathname}${target.url.search} HTTP/1.1`,
    `Host: ${target.url.host}`,
    ...given.map(([name, value]) => `${name}: ${value}`),
    ...(body === null ? [] : [`Content-Length: ${octetsOf(body)}`]),
    "Connection: close",
  ];
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** Returns the checked addresses of the host, or the reason if there are none. */
async function addressesOf(
  deps: GuardedDeps,
  target: Target,
  allowPrivate: boolean,
): Promise<string[] | string> {
  const { host } = target;
  const addresses = isIP(host) !== 0 ? [host] : await lookUp(deps.resolver, host);
  if (typeof addresses === "string") return addresses;
  const allowed = addresses.filter((ip) => deps.mayReach(ip, allowPrivate));
  return allowed.length > 0 ? allowed.slice(0, MAX_TRIED_ADDRESSES) : `${host} ${NO_PUBLIC_ADDRESS}`;
}

async function lookUp(resolver: Resolver, host: string): Promise<string[] | string> {
  const found = await resolveAddresses(resolver, host);
  if (found.status === "ok") return [...found.records];
  return found.status === "failure" ? `lookup of ${host}: ${found.reason}` : `${host} has no address`;
}

interface Sending {
  octets: readonly Uint8Array[];
  maxBodyOctets: number | undefined;
  /** Milliseconds left. */
  left: () => number;
}

/** Tries the addresses in order until one connects. A second request could be a duplicate. */
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
