import { sleep } from "../core/clock.ts";
import { turn } from "../core/turn.ts";
import type { Action } from "./actions.ts";
import type { ConnectionDeps, ConnectionOptions } from "./connection-options.ts";
import { Deadline } from "./deadline.ts";
import type { Holder } from "./intake.ts";
import { REPLIES, type Reply } from "./reply.ts";
import { Session } from "./session.ts";
import { SOCKET_EVENTS, type SmtpSocket, type SocketOwner } from "./socket-events.ts";

/** Refused recipients of one session that are answered at once; those beyond wait, which makes guessing slow. */
export const REFUSALS_AT_ONCE = 5;
/**
 * Octets in one piece behind which others have a turn. Of a peer that sends faster than we read, the socket hands over one
 * piece of half a MiB after the other, and one of nothing but short lines takes twenty milliseconds.
 */
export const TURN_OCTETS = 256 * 1024;
/** How long an answer to one beyond waits. */
export const TARPIT_MS = 1_000;

/** One socket with its session: carries out the session's actions, ends it when it is late, pauses it when too much is held. */
export class Connection implements Holder, SocketOwner {
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
  /** Whether the session goes on, and the socket is read on, with the next turn of the event loop. */
  #catchingUp = false;
  /** Ends the wait before the greeting; null once it is over. */
  #cancelGreeting: (() => void) | null = null;
  /** Whether the message must wait for room among those of other connections. */
  #crowded = false;
  readonly #deadline: Deadline;

  constructor(deps: ConnectionDeps, options: ConnectionOptions, socket: SmtpSocket) {
    this.#deps = deps;
    this.#options = options;
    this.#socket = socket;
    this.#session = new Session(options);
    this.#deadline = new Deadline(deps.clock, () => this.#timeUp());
  }

  get ip(): string {
    return this.#options.ip;
  }

  /**
   * Greets the peer, a moment later: one that speaks before (RFC 5321 §3.1 lets nobody do so) does not read what it is
   * told, as programs that send spam do.
   */
  open(): void {
    if (this.#options.greetAfterMs === 0) {
      this.#perform(this.#session.greet());
      return;
    }
    this.#deadline.move(this.#session);
    this.#cancelGreeting = this.#deps.clock.after(this.#options.greetAfterMs, () => {
      this.#cancelGreeting = null;
      this.#perform(this.#session.greet());
    });
  }

  /** Messages taken from this peer. */
  get messages(): number {
    return this.#session.messages;
  }

  pause(): void {
    this.#crowded = true;
    this.#deadline.rest();
    this.#pause();
  }

  resume(): void {
    this.#crowded = false;
    this.#deadline.move(this.#session);
    this.#settle();
  }

  giveUp(): void {
    this.#perform(this.#session.abort(REPLIES.tooSlow));
  }

  /** Lets the session end as soon as nothing is in hand. */
  dismiss(): void {
    this.#stopGreeting();
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
    if (this.#cancelGreeting !== null) {
      this.#stopGreeting();
      this.#deps.log.debug("spoke before the greeting", { ip: this.ip });
      this.#perform(this.#session.abort(REPLIES.earlyTalker));
      return;
    }
    const waiting = this.#session.phase === "waiting";
    this.#perform(this.#session.receive(chunk));
    // A client that sends ahead is read on once it has its answers, and has read them.
    if (chunk.length >= TURN_OCTETS) void this.#catchUp();
    if (waiting || this.#catchingUp || this.#crowded || this.#unsent !== "") this.#pause();
  }

  #stopGreeting(): void {
    this.#cancelGreeting?.();
    this.#cancelGreeting = null;
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
    this.#deadline.cancel();
    this.#stopGreeting();
    const { helo, tls, messages } = this.#session;
    this.#deps.log.debug("session ended", { ip: this.ip, helo, tls, messages });
    this.#session.close();
    this.#leave();
  }

  /** The socket or TLS failed, which peers bring about at will; or an event threw, which is a fault of ours. */
  failed(error: Error): void {
    const byPeer = "code" in error;
    if (byPeer) this.#deps.log.debug("connection failed", { ip: this.ip, error: error.message });
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
    if (!this.#asking && !this.#closed) this.#hold();
    // Octets that complete no command are no progress; those of a message are. While it waits for room its time rests.
    if (this.#crowded) this.#deadline.rest();
    else if (actions.length > 0 || this.#session.receiving) this.#deadline.move(this.#session);
    this.#settle();
  }

  /** Tells what the message in hand takes; where there is too much of all together, it waits. */
  #hold(): void {
    const { held, receiving } = this.#session;
    this.#crowded = !this.#deps.intake.hold(this, held, receiving || held > 0 ? "coming" : "none");
  }

  /** Carries out one action. `close` needs nothing here: the session's phase says so, and all must be written first. */
  #carryOut(action: Action): void {
    const { handler } = this.#deps;
    if (action.kind === "write") this.#write(action.text);
    else if (action.kind === "startTls") this.#startTls();
    else if (action.kind === "recipient") void this.#ask(handler.recipient(action.address, action.envelope));
    else if (action.kind === "message") {
      void this.#ask(handler.message(action.envelope, action.raw));
      this.#deps.intake.hold(this, action.raw.length, "whole");
      this.#crowded = false;
    }
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

  async #ask(question: Promise<Reply | null>): Promise<void> {
    this.#asking = true;
    const verdict = await question;
    if (verdict !== null && verdict.code >= 500) await this.#tarpit();
    this.#asking = false;
    if (this.#closed) this.#leave();
    else this.#perform(this.#session.answer(verdict));
  }

  async #tarpit(): Promise<void> {
    const { tarpit } = this.#options;
    if (tarpit && this.#session.refusedRecipients >= REFUSALS_AT_ONCE)
      await sleep(this.#deps.clock, TARPIT_MS);
  }

  #startTls(): void {
    // Our answer must leave in plain text before anything else: a client that does not read it gets no TLS.
    if (this.#unsent !== "") {
      this.#socket.terminate();
      return;
    }
    this.#resume();
    const tls = this.#options.tls();
    try {
      const [, secure] = this.#socket.upgradeTLS<SocketOwner | undefined>({
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

  /** Reads on, or goes on with what was read, or closes, whichever is due now. */
  #settle(): void {
    if (this.#closed || this.#unsent !== "") return;
    const { phase, behind } = this.#session;
    if (phase === "closed") this.#shutdown();
    else if (behind) void this.#catchUp();
    else if (phase !== "waiting" && !this.#crowded && !this.#catchingUp) this.#resume();
    if (this.#peerEnded && phase !== "waiting" && !behind) this.#socket.end();
  }

  /** Has the session go on, with the commands left or what comes, when others have had a turn. */
  async #catchUp(): Promise<void> {
    if (this.#catchingUp) return;
    this.#catchingUp = true;
    await turn();
    this.#catchingUp = false;
    // Replies that wait bring it back here once they are out.
    if (!this.#closed && this.#unsent === "") this.#perform(this.#session.proceed());
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

  #timeUp(): void {
    if (this.#session.phase === "closed" || this.#session.phase === "tls") this.#socket.terminate();
    else this.#perform(this.#session.abort(REPLIES.timeout));
  }

  #leave(): void {
    if (!this.#closed || this.#asking) return;
    this.#deps.intake.hold(this, 0, "none");
    this.#deps.gone();
  }
}
