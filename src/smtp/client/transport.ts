import type { DaneDemand } from "../../core/tls-policy.ts";
import type { X509Certificate } from "node:crypto";
import { reasonOf } from "../../core/errors.ts";
import { matchDane } from "./dane.ts";
import {
  type CertificateFacts,
  certificateFacts,
  hasAlternativeName,
  presentedChain,
} from "./peer-certificate.ts";
import {
  type ExchangeResult,
  createTransportState,
  closeTransport,
  exchange,
  type TransportState,
  flush,
  receive,
  type TransportDeps,
} from "./transport-queue.ts";

/** Result of a TLS handshake. */
export interface TlsState {
  /** Version and cipher. */
  name: string;
  /** Why the certificate is not valid for the name; null if it is. */
  fault: string | null;
  /** Fields of the certificate; null if it is unreadable. */
  certificate: CertificateFacts | null;
}

export interface TlsRequest {
  /** The name the certificate must have. */
  host: string;
  /** If true, only a subject alternative name counts, as MTA-STS requires (RFC 8461 §4.2). */
  alternativeNamesOnly?: boolean;
  /** Verifies the certificate instead of the authorities. */
  dane?: DaneDemand | undefined;
  timeoutMs: number;
}

/** A connection to an SMTP peer: sends bytes and returns replies, in order. Nothing here throws or rejects. */
export interface Transport {
  /**
   * Writes `octets` and waits for one reply for each of `timeouts` (milliseconds). May be called again before the
   * replies have come; they are assigned in the order of the calls.
   */
  exchange(octets: readonly Uint8Array[], timeouts: readonly number[]): Promise<ExchangeResult>;
  /** Starts TLS. If that fails, closes the transport and returns the reason. */
  upgrade(request: TlsRequest): Promise<TlsState | string>;
  /** Returns true if all octets are written. */
  allWritten(): boolean;
  /** Returns our own address in this connection; null before it is open. */
  localAddress(): string | null;
  /** Returns why the transport is closed; null if it is usable. */
  closeReason(): string | null;
  close(reason: string): void;
  /** Registers a listener, called once when either side closes. */
  onClosed(listener: () => void): void;
}

export interface TransportOptions {
  ip: string;
  port: number;
  /** Our own address. If undefined, the system chooses it. */
  localAddress?: string | undefined;
  connectTimeoutMs: number;
  blockTimeoutMs: number;
}

/** Opens a TCP connection. Returns the reason if that fails. */
export async function openTransport(
  deps: TransportDeps,
  options: TransportOptions,
): Promise<Transport | string> {
  const state = createTransportState(deps, options.blockTimeoutMs);
  const failure = await connect(state, options);
  return failure ?? createTransport(state);
}

async function connect(state: TransportState, options: TransportOptions): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>();
  const cancel = state.deps.clock.after(options.connectTimeoutMs, () => resolve("connection timed out"));
  const { ip: hostname, port, localAddress } = options;
  const target = {
    hostname,
    port,
    // Bun binds the socket to it, although its types do not name it.
    ...(localAddress === undefined ? {} : { localAddress }),
    socket: {
      open: (socket) => {
        state.socket = socket;
        resolve(null);
      },
      data: (_socket, chunk) => void (state.upgraded || receive(state, chunk)),
      drain: () => void (state.upgraded || flush(state)),
      close: () => void (state.upgraded || closeTransport(state, "connection closed by the peer")),
      error: (_socket, error) => closeTransport(state, reasonOf(error)),
      connectError: (_socket, error) => resolve(`connection failed: ${reasonOf(error)}`),
    },
  } satisfies Bun.TCPSocketConnectOptions & { localAddress?: string };
  const opening = Bun.connect(target);
  opening.catch((error: unknown) => resolve(`connection failed: ${reasonOf(error)}`));
  const failure = await promise;
  cancel();
  // After a timeout the connection may still open; close it then.
  if (failure !== null) opening.then((socket) => socket.terminate()).catch(() => undefined);
  return failure;
}

function createTransport(state: TransportState): Transport {
  return {
    exchange: (octets, timeouts) => exchange(state, octets, timeouts),
    upgrade: (request) => upgrade(state, request),
    allWritten: () => state.outgoing.length === 0,
    localAddress: () => state.socket?.localAddress ?? null,
    closeReason: () => state.closeReason,
    close: (reason) => closeTransport(state, reason),
    onClosed(listener) {
      state.onClosed = listener;
    },
  };
}

async function upgrade(state: TransportState, request: TlsRequest): Promise<TlsState | string> {
  // An attacker sent the bytes after the reply to STARTTLS in plain text (response injection).
  if (state.parser.pending()) closeTransport(state, "bytes in the clear after STARTTLS");
  if (state.closeReason !== null || state.socket === null) return state.closeReason ?? "not connected";
  const { promise, resolve } = Promise.withResolvers<TlsState | string>();
  const cancel = state.deps.clock.after(request.timeoutMs, () => resolve("TLS handshake timed out"));
  state.upgraded = true;
  const [, secure] = state.socket.upgradeTLS({
    data: undefined,
    // The caller judges the certificate. For opportunistic TLS a bad one is better than none.
    tls: {
      rejectUnauthorized: false,
      serverName: request.host,
      ...(state.deps.ca === undefined ? {} : { ca: state.deps.ca }),
    },
    socket: {
      handshake: (socket, success, error) => {
        const finished = success || CERTIFICATE_FAULT.test(reasonOf(error));
        resolve(finished ? tlsState(state.deps, request, socket, error) : handshakeFailure(error));
      },
      data: (_socket, chunk) => receive(state, chunk),
      drain: () => flush(state),
      close: () => {
        resolve("connection closed in the TLS handshake");
        closeTransport(state, "connection closed by the peer");
      },
      error: (_socket, error) => closeTransport(state, reasonOf(error)),
    },
  });
  // From here on, closing the plain socket does nothing, so only `secure` can end a handshake that hangs.
  state.socket = secure;
  const outcome = await promise;
  cancel();
  if (typeof outcome === "string") closeTransport(state, outcome);
  return state.closeReason ?? outcome;
}

/**
 * Codes of certificate faults: those of X.509, and the one for another name. With the latter, Bun reports the handshake
 * as failed, although TLS is established.
 */
const CERTIFICATE_FAULT = /^(?:ERR_TLS_CERT_ALTNAME_INVALID|(?!ERR_)[A-Z0-9]+_[A-Z0-9_]+)$/;

/** Also for a handshake that fails late, when there is already a cipher. */
function handshakeFailure(error: Error | null): string {
  return `TLS handshake failed: ${reasonOf(error)}`;
}

function tlsState(
  deps: TransportDeps,
  request: TlsRequest,
  socket: Bun.Socket,
  error: Error | null,
): TlsState | string {
  const cipher: { name?: string; version?: string } | null = socket.getCipher();
  if (!cipher?.name) return handshakeFailure(error);
  const chain = presentedChain(socket);
  return {
    name: `${socket.getTLSVersion()} ${cipher.name}`,
    fault:
      request.dane === undefined
        ? (pkixFault(socket, error) ?? nameFault(request, chain[0]))
        : matchDane(request.dane, chain, deps.clock.now()),
    certificate: certificateFacts(chain[0]),
  };
}

/** Returns the fault found by the authorities and the host's name, or null. */
function pkixFault(socket: Bun.Socket, error: Error | null): string | null {
  if (socket.authorized) return null;
  return error === null || error === undefined ? "unknown" : reasonOf(error);
}

/**
 * If a certificate has no alternative host names, the authorities' check accepts the common name, which is free text.
 */
function nameFault(
  { host, alternativeNamesOnly }: TlsRequest,
  certificate: X509Certificate | undefined,
): string | null {
  if (alternativeNamesOnly !== true || hasAlternativeName(certificate, host)) return null;
  return `no subject alternative name is ${host}`;
}
