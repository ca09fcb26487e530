import type { X509Certificate } from "node:crypto";
import { reasonOf } from "../../core/errors.ts";
import { matchDane } from "./dane.ts";
import type { DaneDemand } from "./delivery.ts";
import {
  type CertificateFacts,
  certificateFacts,
  hasAlternativeName,
  presentedChain,
} from "./peer-certificate.ts";
import { type Answers, createLine, cut, exchange, type Line, pump, received, type WireDeps } from "./line.ts";

/** What a TLS handshake has led to. */
export interface TlsState {
  /** Version and cipher. */
  name: string;
  /** Why the certificate does not stand for the name asked for; null where it does. */
  fault: string | null;
  /** What the certificate says; null where it cannot be read. */
  certificate: CertificateFacts | null;
}

export interface TlsWish {
  /** The name the certificate must bear. */
  host: string;
  /** Only a subject alternative name counts as one, as MTA-STS asks (RFC 8461 §4.2). */
  alternativeNamesOnly?: boolean;
  /** Judges the certificate in place of the authorities. */
  dane?: DaneDemand | undefined;
  timeoutMs: number;
}

/** A connection to an SMTP peer: bytes out, replies in, in order. Nothing here throws or rejects. */
export interface Wire {
  /**
   * Writes `octets` and waits for one reply for each of `timeouts` (milliseconds). May be called again before the
   * replies are here: they are handed out in the order of the calls.
   */
  exchange(octets: readonly Uint8Array[], timeouts: readonly number[]): Promise<Answers>;
  /** Turns to TLS; a string says why that failed, and the wire is cut. */
  upgrade(wish: TlsWish): Promise<TlsState | string>;
  /** Whether all octets given to it are written. */
  flushed(): boolean;
  /** Null while the wire can be used; else why not. */
  broken(): string | null;
  cut(reason: string): void;
  /** Called once, when the wire is cut by either side. */
  whenCut(listener: () => void): void;
}

export interface WireOptions {
  ip: string;
  port: number;
  connectTimeoutMs: number;
  blockTimeoutMs: number;
}

/** Opens a TCP connection; a string says why that failed. */
export async function openWire(deps: WireDeps, options: WireOptions): Promise<Wire | string> {
  const line = createLine(deps, options.blockTimeoutMs);
  const failure = await connect(line, options);
  return failure ?? wireOver(line);
}

async function connect(line: Line, options: WireOptions): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>();
  const cancel = line.deps.clock.after(options.connectTimeoutMs, () => resolve("connection timed out"));
  const opening = Bun.connect({
    hostname: options.ip,
    port: options.port,
    socket: {
      open: (socket) => {
        line.socket = socket;
        resolve(null);
      },
      data: (_socket, chunk) => void (line.upgraded || received(line, chunk)),
      drain: () => void (line.upgraded || pump(line)),
      close: () => void (line.upgraded || cut(line, "connection closed by the peer")),
      error: (_socket, error) => cut(line, reasonOf(error)),
      connectError: (_socket, error) => resolve(`connection failed: ${reasonOf(error)}`),
    },
  });
  opening.catch((error: unknown) => resolve(`connection failed: ${reasonOf(error)}`));
  const failure = await promise;
  cancel();
  // The connection may still be opening when the time is over; it is cut once it has.
  if (failure !== null) opening.then((socket) => socket.terminate()).catch(() => undefined);
  return failure;
}

function wireOver(line: Line): Wire {
  return {
    exchange: (octets, timeouts) => exchange(line, octets, timeouts),
    upgrade: (wish) => upgrade(line, wish),
    flushed: () => line.outgoing.length === 0,
    broken: () => line.brokenBy,
    cut: (reason) => cut(line, reason),
    whenCut(listener) {
      line.listener = listener;
    },
  };
}

async function upgrade(line: Line, wish: TlsWish): Promise<TlsState | string> {
  // Bytes behind the reply to STARTTLS were sent in the clear by whoever sits in between (response injection).
  if (line.parser.pending()) cut(line, "bytes in the clear behind STARTTLS");
  if (line.brokenBy !== null || line.socket === null) return line.brokenBy ?? "not connected";
  const { promise, resolve } = Promise.withResolvers<TlsState | string>();
  const cancel = line.deps.clock.after(wish.timeoutMs, () => resolve("TLS handshake timed out"));
  line.upgraded = true;
  const [, secure] = line.socket.upgradeTLS({
    data: undefined,
    // The certificate is judged by the caller, for whom a bad one is better than none.
    tls: {
      rejectUnauthorized: false,
      serverName: wish.host,
      ...(line.deps.ca === undefined ? {} : { ca: line.deps.ca }),
    },
    socket: {
      handshake: (socket, success, error) => {
        const finished = success || CERTIFICATE_FAULT.test(reasonOf(error));
        resolve(finished ? tlsState(line.deps, wish, socket, error) : brokenOff(error));
      },
      data: (_socket, chunk) => received(line, chunk),
      drain: () => pump(line),
      close: () => {
        resolve("connection closed in the TLS handshake");
        cut(line, "connection closed by the peer");
      },
      error: (_socket, error) => cut(line, reasonOf(error)),
    },
  });
  // From now on the plain socket's end closes nothing: a handshake that stands still would hold the connection for ever.
  line.socket = secure;
  const state = await promise;
  cancel();
  if (typeof state === "string") cut(line, state);
  return line.brokenBy ?? state;
}

/**
 * The codes by which a certificate is found fault with: those of X.509, and that for another name. With the latter
 * fault the handshake is called no success, whichever is given as the reason, and yet TLS stands.
 */
const CERTIFICATE_FAULT = /^(?:ERR_TLS_CERT_ALTNAME_INVALID|(?!ERR_)[A-Z0-9]+_[A-Z0-9_]+)$/;

/** Also a handshake that breaks off late, when there is a cipher already. */
function brokenOff(error: Error | null): string {
  return `TLS handshake failed: ${reasonOf(error)}`;
}

function tlsState(deps: WireDeps, wish: TlsWish, socket: Bun.Socket, error: Error | null): TlsState | string {
  const cipher: { name?: string; version?: string } | null = socket.getCipher();
  if (!cipher?.name) return brokenOff(error);
  const chain = presentedChain(socket);
  return {
    name: `${socket.getTLSVersion()} ${cipher.name}`,
    fault:
      wish.dane === undefined
        ? (pkixFault(socket, error) ?? nameFault(wish, chain[0]))
        : matchDane(wish.dane, chain, deps.clock.now()),
    certificate: certificateFacts(chain[0]),
  };
}

/** What the authorities and the host's name make of the certificate. */
function pkixFault(socket: Bun.Socket, error: Error | null): string | null {
  if (socket.authorized) return null;
  return error === null || error === undefined ? "unknown" : reasonOf(error);
}

/** Where a certificate has no alternative names of hosts, the authorities' check takes the common name, which is free text. */
function nameFault(
  { host, alternativeNamesOnly }: TlsWish,
  certificate: X509Certificate | undefined,
): string | null {
  if (alternativeNamesOnly !== true || hasAlternativeName(certificate, host)) return null;
  return `no subject alternative name is ${host}`;
}
