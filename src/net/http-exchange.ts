import { isIP } from "node:net";
import type { Clock } from "../core/clock.ts";
import { reasonOf } from "../core/errors.ts";
import { createResponseReader, type HttpResponse } from "./http-response.ts";

/** One request to one address. */
export interface HttpRequest {
  ip: string;
  port: number;
  /** Null for http; else the name the certificate must bear, "" where the URL names an address. */
  tlsName: string | null;
  /** Head and body as they go out. */
  octets: Buffer;
  /** Octets of the answer's body that are read; 4 KiB where not given. */
  maxBodyOctets?: number | undefined;
  /** Time for all of it: connection, handshake, request and answer. */
  timeoutMs: number;
  /** Time for the connection alone, so that a dead address leaves time for the next. */
  connectTimeoutMs: number;
}

export type HttpOutcome =
  /**
   * `whole`: the body was read to its end or to the limit. One that ends with the connection never is: it cannot be
   * told from one that somebody in between has cut short (RFC 9112 §8).
   */
  | { kind: "answered"; response: HttpResponse; whole: boolean }
  /** `connected`: whether a connection stood, so that the request may have been seen. */
  | { kind: "failed"; reason: string; connected: boolean };

/** Where a URL leads. */
export interface HttpEndpoint extends Pick<HttpRequest, "port" | "tlsName"> {
  /** Name or address, without the brackets of an IPv6 address and without a final dot. */
  host: string;
}

const HTTP_PORT = 80;
const HTTPS_PORT = 443;

/** The host and port of an http or https URL, and the name that its certificate must bear. */
export function endpointOf(url: URL): HttpEndpoint {
  const secure = url.protocol === "https:";
  const host = url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  const port = url.port === "" ? (secure ? HTTPS_PORT : HTTP_PORT) : Number(url.port);
  // RFC 6066 §3: server_name holds no address.
  return { host, port, tlsName: secure ? (isIP(host) === 0 ? host : "") : null };
}

export interface HttpDeps {
  clock: Clock;
  /** PEM of the authorities trusted instead of the built-in ones. */
  ca?: string | undefined;
}

/**
 * Puts one request on a connection of its own and reads the head and the first octets of the answer; then the
 * connection is cut, whatever the endpoint still sends. The connection goes to the address given and to nothing else:
 * no proxy setting of the environment, no redirect and no second name lookup can lead it elsewhere.
 */
export async function exchangeHttp(deps: HttpDeps, request: HttpRequest): Promise<HttpOutcome> {
  const { promise, resolve } = Promise.withResolvers<HttpOutcome>();
  const reader = createResponseReader(request.maxBodyOctets);
  let connected = false;
  let over = false;
  const ended = (reason: string, whole = false): void => {
    over = true;
    const response = reader.response();
    // Once the status is here the endpoint has taken the request, though it may never end its answer.
    resolve(
      response === null ? { kind: "failed", reason, connected } : { kind: "answered", response, whole },
    );
  };
  const send = createSender(request.octets);
  const started = (socket: Bun.Socket): void => {
    // By then another address may have been sent the request, or the try be told as failed.
    if (over) return void socket.terminate();
    connected = true;
    send(socket);
  };
  const timers = [
    deps.clock.after(request.timeoutMs, () => ended("timeout")),
    deps.clock.after(request.connectTimeoutMs, () => connected || ended("connection timed out")),
  ];
  const opening = Bun.connect({
    hostname: request.ip,
    port: request.port,
    ...tlsOptions(deps, request.tlsName),
    socket: {
      open: (socket) => void (request.tlsName === null && started(socket)),
      handshake: (socket, success, error) => {
        if (success && error === null) started(socket);
        else ended(`TLS: ${reasonOf(error)}`);
      },
      drain: (socket) => void (connected && send(socket)),
      data: (_socket, chunk) => {
        const state = reader.push(chunk);
        if (state === "malformed") ended("malformed HTTP answer");
        if (state === "complete") ended("", true);
      },
      close: () => ended("connection closed before an answer"),
      error: (_socket, error) => ended(reasonOf(error)),
      connectError: (_socket, error) => ended(`connection failed: ${reasonOf(error)}`),
    },
  });
  opening.catch((error: unknown) => ended(`connection failed: ${reasonOf(error)}`));
  const outcome = await promise;
  for (const cancel of timers) cancel();
  // The connection may still be opening when the time is over; it is cut once it has.
  opening.then((socket) => socket.terminate()).catch(() => undefined);
  return outcome;
}

function tlsOptions(deps: HttpDeps, tlsName: string | null): { tls?: Bun.TLSOptions } {
  if (tlsName === null) return {};
  return {
    tls: {
      rejectUnauthorized: true,
      // The empty name, too: Bun would send the address as server_name, which some servers refuse (Jetty: "Invalid SNI"). It
      // still looks for the address in the certificate.
      serverName: tlsName,
      ...(deps.ca === undefined ? {} : { ca: deps.ca }),
    },
  };
}

/** A write takes what the send buffer holds; the rest follows when it has drained. */
function createSender(octets: Buffer): (socket: Bun.Socket) => void {
  let sent = 0;
  return (socket) => {
    if (sent < octets.length) sent += Math.max(0, socket.write(octets.subarray(sent)));
  };
}
