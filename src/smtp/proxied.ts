import type { Clock } from "../core/clock.ts";
import type { Log } from "../log.ts";
import { readProxyHeader } from "./proxy-header.ts";
import type { SmtpSocket, SocketOwner } from "./socket-events.ts";

/** Time in which a proxy must have said for whom it speaks: it sends its header first of all. */
export const PROXY_HEADER_MS = 5_000;

export interface ProxiedDeps {
  clock: Clock;
  log: Log;
  /** Lets the client in, with what it has sent behind the header; null: the proxy itself, which is only looking. */
  admit(socket: SmtpSocket, ip: string | null, rest: Buffer): void;
}

/** A connection from a proxy, until its PROXY header has told whose it is. */
export class Proxied implements SocketOwner {
  readonly #deps: ProxiedDeps;
  readonly #cancel: () => void;
  #bytes = Buffer.alloc(0);

  constructor(deps: ProxiedDeps, socket: SmtpSocket) {
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
