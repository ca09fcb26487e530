import { isIP } from "node:net";
import type { Clock } from "../core/time/clock.ts";
import { reasonOf } from "../core/errors.ts";
import { createResponseReader, type HttpResponse } from "./http-response.ts";

export interface HttpRequest {
  ip: string;
  port: number;
  /** Null for http; else the name the certificate must have, which is "" if the URL has an address. */
  tlsName: string | null;
  /** Head and body, in pieces. */
  octets: readonly Uint8Array[];
  /** Octets read of the response body; 4 KiB if undefined. */
  maxBodyOctets?: number | undefined;
  /** Time for connection, handshake, request and response together. */
  timeoutMs: number;
  /** Connect timeout, so that one dead address does not use up the others' time. */
  connectTimeoutMs: number;
}

export type HttpOutcome =
  /**
   * `whole`: the body was read to its end or to the limit. If the body ends with the connection, it is false: an
   * attacker may have cut it short (RFC 9112 §8).
   */
  | { kind: "answered"; response: HttpResponse; whole: boolean }
  /** `connected`: true if a connection was open, so that the server may have received the request. */
  | { kind: "failed"; reason: string; connected: boolean };

/** Host and port of a URL. */
export interface HttpEndpoint extends Pick<HttpRequest, "port" | "tlsName"> {
  /** Name or address, without the brackets of IPv6 and without a final dot. */
  host: string;
}

const HTTP_PORT = 80;
const HTTPS_PORT = 443;

/** Returns host and port of an http or https URL, and the name for its certificate. */
export function endpointOf(url: URL): HttpEndpoint {
  const secure = url.protocol === "https:";
  const host = url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  const port = url.port === "" ? (secure ? HTTPS_PORT : HTTP_PORT) : Number(url.port);
  // RFC 6066 §3: server_name must not be an address.
  return { host, port, tlsName: secure ? (isIP(host) === 0 ? host : "") : null };
}

export interface HttpDeps {
  clock: Clock;
  /** PEM of the trusted authorities. If undefined, the built-in ones. */
  ca?: string | undefined;
}

/**
 * Sends one request on its own connection, reads the head and the first octets of the response, then closes the
 * connection. It goes only to the given address: proxy settings, redirects and further lookups cannot change that.
 */
export async function exchangeHttp(deps: HttpDeps, request: HttpRequest): Promise<HttpOutcome> {
  const { promise, resolve } = Promise.withResolvers<HttpOutcome>();
  const reader = createResponseReader(request.maxBodyOctets);
  let connected = false;
  let over = false;
  const ended = (reason: string, whole = false): void => {
    over = true;
    const response = reader.response();
    // Once the status has come, the server has received the request, even if it never ends its response.
    resolve(
      response === null ? { kind: "failed", reason, connected } : { kind: "answered", response, whole },
    );
  };
  const send = createSender(request.octets);
  const started = (socket: Bun.Socket): void => {
    // The attempt may have been reported as failed, or another address may have got the request.
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
  // After a timeout the connection may still open; close it then.
  opening.then((socket) => socket.terminate()).catch(() => undefined);
  return outcome;
}

function tlsOptions(deps: HttpDeps, tlsName: string | null): { tls?: Bun.TLSOptions } {
  if (tlsName === null) return {};
  return {
    tls: {
      rejectUnauthorized: true,
      // Even if empty: Bun would send the address as server_name, which some servers refuse (Jetty: "Invalid SNI"). Bun
      // still checks the address against the certificate.
      serverName: tlsName,
      ...(deps.ca === undefined ? {} : { ca: deps.ca }),
    },
  };
}

/** Writes what the send buffer accepts. The rest follows after `drain`. */
function createSender(pieces: readonly Uint8Array[]): (socket: Bun.Socket) => void {
  let [at, sent] = [0, 0];
  return (socket) => {
    for (let piece = pieces[at]; piece !== undefined; piece = pieces[at]) {
      sent += Math.max(0, socket.write(piece.subarray(sent)));
      if (sent < piece.length) return;
      [at, sent] = [at + 1, 0];
    }
  };
}
