import type { Socket, SocketHandler } from "bun";
import type { Clock } from "../core/clock.ts";
import type { Log } from "../log.ts";
import type { Envelope, MailHandler } from "./envelope.ts";
import { REPLIES, type Reply } from "./reply.ts";
import { type Action, type Phase, Session, type SessionOptions } from "./session.ts";

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;

/** How long a session may stay in one phase without getting on. */
export const PHASE_TIMEOUT_MS: Record<Phase, number> = {
  /** RFC 5321 §4.5.3.2.7: from the last answer to the end of the next command, so that dripping octets gains nothing. */
  command: 5 * MINUTE_MS,
  /** RFC 5321 §4.5.3.2.5: silence between two parts of a message. */
  data: 3 * MINUTE_MS,
  /** RFC 5321 §4.5.3.2.6: a client waits no longer for the answer to a message. */
  waiting: 10 * MINUTE_MS,
  /** From the answer to STARTTLS to the end of the handshake. */
  tls: MINUTE_MS,
  /** After our last word, for the client to read it and close. */
  closed: 5 * SECOND_MS,
};
/** From MAIL to the answer to DATA, however busy the client is. */
export const TRANSACTION_TIMEOUT_MS = 30 * MINUTE_MS;

export interface ConnectionDeps {
  clock: Clock;
  handler: MailHandler;
  log: Log;
  /** Called once, when the socket is closed and the handler has nothing of it in hand. */
  gone: (connection: Connection) => void;
}

export interface ConnectionOptions extends SessionOptions {
  /** Key and certificate chain, PEM. */
  tls: { key: string; cert: string };
}

type SmtpSocket = Socket<Connection | undefined>;

/** Events of every socket, before and after STARTTLS, go to its connection. Sockets refused at the door have none. */
export const SOCKET_EVENTS: SocketHandler<Connection | undefined> = {
  data: (socket, chunk) => socket.data?.received(socket, chunk),
  drain: (socket) => socket.data?.drained(socket),
  end: (socket) => socket.data?.peerEnded(socket),
  close: (socket) => socket.data?.socketClosed(socket),
  error: (socket, error) => socket.data?.failed(error),
  handshake: (socket, success, error) => socket.data?.handshaken(socket, success, error),
};

/** One socket with its session: carries out the session's actions, keeps its times, holds back what is too much. */
export class Connection {
  readonly #deps: ConnectionDeps;
  readonly #options: ConnectionOptions;
  readonly #session: Session;
  /** The socket in use; the plain one no longer counts once it has been turned to TLS. */
  #socket: SmtpSocket;
  /** Replies the socket has not taken yet. While there are any nothing is read, so they cannot pile up. */
  #unsent = "";
  #paused = false;
  #peerEnded = false;
  #shutDown = false;
  #closed = false;
  /** Whether the handler has a recipient or message in hand. */
  #asking = false;
  #deadline = 0;
  #transaction = 0;
  #transactionDeadline = 0;
  #timerAt = Number.POSITIVE_INFINITY;
  #cancelTimer: () => void = () => {};

  constructor(deps: ConnectionDeps, options: ConnectionOptions, socket: SmtpSocket) {
    this.#deps = deps;
    this.#options = options;
    this.#socket = socket;
    this.#session = new Session(options);
  }

  get ip(): string {
    return this.#options.ip;
  }

  /** Sends the greeting. */
  open(): void {
    this.#perform(this.#session.greet());
  }

  /** Lets the session end as soon as nothing is in hand. */
  dismiss(): void {
    this.#perform(this.#session.dismiss(REPLIES.shuttingDown));
  }

  /** Ends the session at once, whatever is in hand. */
  cutOff(): void {
    if (this.#closed) return;
    this.#perform(this.#session.abort(REPLIES.shuttingDown));
    this.#socket.end();
    if (!this.#closed) this.#socket.terminate();
  }

  received(socket: SmtpSocket, chunk: Buffer): void {
    // After STARTTLS the plain socket still hands out what arrives, as ciphertext: that is not for the session.
    if (socket !== this.#socket) return;
    const waiting = this.#session.phase === "waiting";
    this.#perform(this.#session.receive(chunk));
    // A client that sends ahead is read on once it has its answer, and has read our replies.
    if (waiting || this.#unsent !== "") this.#pause();
  }

  drained(socket: SmtpSocket): void {
    if (socket !== this.#socket || this.#unsent === "") return;
    const text = this.#unsent;
    this.#unsent = "";
    this.#write(text);
    this.#settle();
  }

  /** The peer sends no more. It may still read, so the answer to what is in hand is given. */
  peerEnded(socket: SmtpSocket): void {
    if (socket !== this.#socket) return;
    this.#peerEnded = true;
    this.#settle();
  }

  socketClosed(socket: SmtpSocket): void {
    // The plain socket's end is also that of the TLS session on it, which tells so itself.
    if (socket !== this.#socket || this.#closed) return;
    this.#closed = true;
    this.#cancelTimer();
    const { helo, tls, messages } = this.#session;
    this.#deps.log.debug("session ended", { ip: this.ip, helo, tls, messages });
    this.#leave();
  }

  /** The socket or TLS failed, which peers bring about at will; or an event threw, which is a fault of ours. */
  failed(error: Error): void {
    const peers = "code" in error;
    if (peers) this.#deps.log.debug("connection failed", { ip: this.ip, error: error.message });
    else this.#deps.log.error("connection failed", { ip: this.ip, error: error.stack });
    if (!this.#closed) this.#socket.terminate();
  }

  handshaken(socket: SmtpSocket, success: boolean, error: Error | null): void {
    if (socket !== this.#socket) return;
    if (success) this.#perform(this.#session.secured(socket.getTLSVersion()));
    else {
      this.#deps.log.debug("TLS handshake failed", { ip: this.ip, error: error?.message });
      socket.terminate();
    }
  }

  #perform(actions: readonly Action[]): void {
    for (const action of actions) this.#carryOut(action);
    // Octets that complete no command are no progress; those of a message are.
    if (actions.length > 0 || this.#session.phase === "data") this.#setDeadline();
    this.#settle();
  }

  /** Carries out one action. `close` needs nothing here: the session's phase says so, and all must be written first. */
  #carryOut(action: Action): void {
    const { handler } = this.#deps;
    if (action.kind === "write") this.#write(action.text);
    else if (action.kind === "startTls") this.#startTls();
    else if (action.kind === "recipient")
      void this.#ask(() => handler.recipient(action.address, action.envelope), action.envelope);
    else if (action.kind === "message")
      void this.#ask(() => handler.message(action.envelope, action.raw), action.envelope);
  }

  #write(text: string): void {
    if (this.#closed || this.#shutDown) return;
    if (this.#unsent !== "") {
      this.#unsent += text;
      return;
    }
    // Replies are ASCII: octets taken are characters taken. A negative count means a dead socket, soon closed.
    const taken = this.#socket.write(text);
    if (taken >= 0) this.#unsent = text.slice(taken);
  }

  async #ask(question: () => Promise<Reply | null>, envelope: Envelope): Promise<void> {
    this.#asking = true;
    const verdict = await this.#verdict(question, envelope);
    this.#asking = false;
    if (this.#closed) this.#leave();
    else this.#perform(this.#session.answer(verdict));
  }

  async #verdict(
    question: () => Promise<Reply | null>,
    { mailFrom, rcptTo }: Envelope,
  ): Promise<Reply | null> {
    try {
      return await question();
    } catch (error) {
      const cause = error instanceof Error ? error.stack : String(error);
      this.#deps.log.error("mail could not be taken", { ip: this.ip, mailFrom, rcptTo, error: cause });
      return REPLIES.localTrouble;
    }
  }

  #startTls(): void {
    // Our answer must leave in plain text before anything else: a client that does not read it gets no TLS.
    if (this.#unsent !== "") {
      this.#socket.terminate();
      return;
    }
    this.#resume();
    const { tls } = this.#options;
    try {
      const [, secure] = this.#socket.upgradeTLS<Connection | undefined>({
        tls,
        data: this,
        socket: SOCKET_EVENTS,
      });
      this.#socket = secure;
    } catch (error) {
      this.#deps.log.error("TLS cannot be started", { error: String(error) });
      this.#socket.terminate();
    }
  }

  /** Reads on, or closes, whichever is due now. */
  #settle(): void {
    if (this.#closed || this.#unsent !== "") return;
    const { phase } = this.#session;
    if (phase === "closed") this.#shutdown();
    else if (phase !== "waiting") this.#resume();
    if (this.#peerEnded && phase !== "waiting") this.#socket.end();
  }

  /**
   * Closes our side only and reads on until the peer closes its own: closing both at once over octets not yet read
   * resets the connection, and the peer might lose our last reply.
   */
  #shutdown(): void {
    if (this.#shutDown) return;
    this.#shutDown = true;
    this.#resume();
    this.#socket.shutdown();
  }

  #pause(): void {
    if (this.#paused || this.#closed || this.#session.phase === "closed") return;
    this.#paused = true;
    this.#socket.pause();
  }

  #resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#socket.resume();
  }

  /** One timer a connection: a deadline that moves away is looked at when the old one has come. */
  #setDeadline(): void {
    if (this.#closed) return;
    const now = this.#deps.clock.now();
    const { phase, transaction } = this.#session;
    if (transaction !== this.#transaction) this.#transactionDeadline = now + TRANSACTION_TIMEOUT_MS;
    this.#transaction = transaction;
    this.#deadline = now + PHASE_TIMEOUT_MS[phase];
    if (transaction > 0 && phase !== "closed")
      this.#deadline = Math.min(this.#deadline, this.#transactionDeadline);
    if (this.#deadline < this.#timerAt) this.#arm(now);
  }

  #arm(now: number): void {
    this.#cancelTimer();
    this.#timerAt = this.#deadline;
    this.#cancelTimer = this.#deps.clock.after(this.#deadline - now, () => this.#timeUp());
  }

  #timeUp(): void {
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = this.#deps.clock.now();
    if (this.#closed) return;
    if (now < this.#deadline) this.#arm(now);
    else if (this.#session.phase === "closed" || this.#session.phase === "tls") this.#socket.terminate();
    else this.#perform(this.#session.abort(REPLIES.timeout));
  }

  #leave(): void {
    if (this.#closed && !this.#asking) this.#deps.gone(this);
  }
}
