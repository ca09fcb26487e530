import type { Socket } from "bun";
import type { Clock } from "../../core/time/clock.ts";
import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import { MAX_QUERY_OCTETS } from "./query.ts";
import type { Responder } from "./responder.ts";

/** From one whole query to the next (RFC 7766 §6.2.3). Sending octet by octet does not extend it. */
export const TCP_IDLE_MS = 10_000;
/** Queries answered in a row before other connections are served. */
const TURN_QUERIES = 64;
const LENGTH_OCTETS = 2;

export interface TcpDeps {
  clock: Clock;
  responder: Responder;
  /** Called once, when the connection is closed. */
  onClosed: () => void;
}

export type TcpSocket = Socket<TcpSession | undefined>;

/** A TCP connection. Reads no queries while the client leaves answers unread (RFC 7766 §6.2.1). */
export class TcpSession {
  readonly #deps: TcpDeps;
  readonly #socket: TcpSocket;
  readonly #client: string;
  #received: Buffer = Buffer.alloc(0);
  #unsent: Buffer = Buffer.alloc(0);
  #answering = false;
  #peerEnded = false;
  #over = false;
  /** Called when the client has taken all that was sent, or is gone. */
  #onTaken: () => void = () => undefined;
  #cancelIdle: () => void = () => undefined;

  constructor(deps: TcpDeps, socket: TcpSocket) {
    this.#deps = deps;
    this.#socket = socket;
    this.#client = socket.remoteAddress;
    this.#rest();
  }

  received(chunk: Buffer): void {
    this.#received =
      this.#received.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#received, chunk]);
    void this.#answerAll();
  }

  drained(): void {
    const octets = this.#unsent;
    this.#unsent = Buffer.alloc(0);
    if (octets.length > 0) this.#write(octets);
    if (this.#unsent.length === 0) this.#onTaken();
    void this.#answerAll();
  }

  /** The client sends no more; its received queries are answered. */
  peerEnded(): void {
    this.#peerEnded = true;
    void this.#answerAll();
  }

  close(): void {
    if (this.#over) return;
    this.closed();
    this.#socket.terminate();
  }

  closed(): void {
    if (this.#over) return;
    this.#over = true;
    this.#cancelIdle();
    this.#onTaken();
    this.#deps.onClosed();
  }

  #rest(): void {
    this.#cancelIdle();
    this.#cancelIdle = this.#deps.clock.after(TCP_IDLE_MS, () => this.close());
  }

  async #answerAll(): Promise<void> {
    if (this.#answering || this.#over) return;
    this.#answering = true;
    // Stop reading during this, so that further queries wait at the client.
    this.#socket.pause();
    for (let answered = 1; await this.#answerNext(); answered++)
      if (answered % TURN_QUERIES === 0) await yieldToEventLoop();
    this.#answering = false;
    if (this.#over || this.#unsent.length > 0) return;
    if (this.#peerEnded) this.#finish();
    else this.#socket.resume();
  }

  /** Answers the first query. Returns false if there is no whole query, or if the client does not read. */
  async #answerNext(): Promise<boolean> {
    if (this.#over || this.#unsent.length > 0 || this.#received.length < LENGTH_OCTETS) return false;
    const octets = this.#received.readUInt16BE(0);
    if (octets > MAX_QUERY_OCTETS) {
      this.close();
      return false;
    }
    if (this.#received.length < LENGTH_OCTETS + octets) return false;
    const packet = this.#received.subarray(LENGTH_OCTETS, LENGTH_OCTETS + octets);
    this.#received = this.#received.subarray(LENGTH_OCTETS + octets);
    const response = await this.#deps.responder(packet, "tcp", this.#client);
    if (this.#over) return false;
    // If this is not a query, the rest cannot be trusted either.
    if (response === null) this.close();
    else if (response.transfer === null) this.#send(response.octets);
    // RFC 5936 §2.2: a transfer that cannot go on is ended by closing the connection.
    else await response.transfer((message) => this.#deliver(message)).catch(() => this.close());
    return !this.#over;
  }

  /** Sends one message of several. Waits until the client has taken it, or is closed because it does not. */
  async #deliver(message: Buffer): Promise<boolean> {
    if (this.#over) return false;
    this.#send(message);
    if (this.#unsent.length > 0)
      await new Promise<void>((resolve) => {
        this.#onTaken = resolve;
      });
    return !this.#over;
  }

  #send(answer: Buffer): void {
    const length = Buffer.alloc(LENGTH_OCTETS);
    length.writeUInt16BE(answer.length);
    this.#rest();
    // RFC 7766 §8: length and message in one write.
    this.#write(Buffer.concat([length, answer]));
  }

  #write(octets: Buffer): void {
    const written = Math.max(0, this.#socket.write(octets));
    this.#unsent = octets.subarray(written);
  }

  #finish(): void {
    this.closed();
    this.#socket.end();
  }
}
