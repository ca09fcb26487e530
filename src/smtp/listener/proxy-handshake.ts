import type { Clock } from "../../core/time/clock.ts";
import type { Log } from "../../log.ts";
import { readProxyHeader } from "./proxy-header.ts";
import type { SmtpSocket, SocketOwner } from "./socket-events.ts";

/** Time for the PROXY header, which is the first thing a proxy sends. */
export const PROXY_HEADER_MS = 5_000;

export interface ProxyHandshakeDeps {
  clock: Clock;
  log: Log;
  /** Admits the client, with the octets after the header. If the proxy connects for itself, `ip` is null. */
  admit(socket: SmtpSocket, ip: string | null, rest: Buffer): void;
}

/** A connection from a proxy, until its PROXY header names the client. */
export class ProxyHandshake implements SocketOwner {
  readonly #deps: ProxyHandshakeDeps;
  readonly #cancel: () => void;
  #bytes = Buffer.alloc(0);

  constructor(deps: ProxyHandshakeDeps, socket: SmtpSocket) {
    this.#deps = deps;
    this.#cancel = deps.clock.after(PROXY_HEADER_MS, () => socket.terminate());
  }

  received(socket: SmtpSocket, chunk: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk]);
    const header = readProxyHeader(this.#bytes);
    if (header.kind === "more") return;
    this.#cancel();
    if (header.kind === "header") this.#deps.admit(socket, header.ip, this.#bytes.subarray(header.octets));
    else {
      this.#deps.log.warn("no PROXY header from a proxy", { ip: socket.remoteAddress });
      socket.terminate();
    }
  }

  drained(): void {}

  peerEnded(socket: SmtpSocket): void {
    socket.terminate();
  }

  socketClosed(): void {
    this.#cancel();
  }

  failed(error: Error): void {
    this.#deps.log.debug("connection failed before its PROXY header", { error: error.message });
  }

  handshaken(): void {}
}
