import { sleep } from "../../core/time/clock.ts";
import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import type { Action } from "../session/actions.ts";
import type { ConnectionDeps, ConnectionOptions } from "./connection-options.ts";
import { Deadline } from "./deadline.ts";
import type { Holder } from "./intake.ts";
import type { LoginVerdict } from "../session/envelope.ts";
import { REPLIES } from "../session/reply.ts";
import { Session } from "../session/session.ts";
import { SOCKET_EVENTS, type SmtpSocket, type SocketOwner } from "./socket-events.ts";

/** Refused recipients of one session that are answered at once. Later replies are delayed, to slow down guessing. */
export const REFUSALS_AT_ONCE = 5;
/** Octets of one piece after which other connections are served: 512 KiB of short lines take 20 ms. */
export const TURN_OCTETS = 256 * 1024;
/** Delay of each reply after those. */
export const TARPIT_MS = 1_000;

/**
 * A socket with its session: carries out the session's actions, ends it on timeout, pauses it if too much is in memory.
 */
export class Connection implements Holder, SocketOwner {
  readonly #deps: ConnectionDeps;
  readonly #options: ConnectionOptions;
  readonly #session: Session;
  /** The socket in use. After STARTTLS it is the TLS socket. */
  #socket: SmtpSocket;
  /** Replies that the socket has not accepted yet. While there are any, nothing is read. */
  #unsent = "";
  #paused = false;
  #peerEnded = false;
  #shutDown = false;
  #closed = false;
  /** True while the handler works on a recipient or a message. */
  #asking = false;
  /** True if the session continues in the next tick of the event loop. */
  #continuing = false;
  /** Cancels the wait before the greeting; null after it. */
  #cancelGreeting: (() => void) | null = null;
  /** True if the message must wait because other messages use the memory. */
  #crowded = false;
  readonly #deadline: Deadline;

  constructor(deps: ConnectionDeps, options: ConnectionOptions, socket: SmtpSocket) {
    this.#deps = deps;
    this.#options = options;
    this.#socket = socket;
    this.#session = new Session(options);
    this.#deadline = new Deadline(deps.clock, () => this.#onTimeout());
  }

  get ip(): string {
    return this.#options.ip;
  }

  /** Greets the peer after a short delay. A client must not speak first (RFC 5321 §3.1), but many spam programs do. */
  open(): void {
    if (this.#options.implicitTls === true) {
      this.#deadline.restart(this.#session);
      this.#startTls();
      return;
    }
    if (this.#options.greetAfterMs === 0) {
      this.#perform(this.#session.greet());
      return;
    }
    this.#deadline.restart(this.#session);
    this.#cancelGreeting = this.#deps.clock.after(this.#options.greetAfterMs, () => {
      this.#cancelGreeting = null;
      this.#perform(this.#session.greet());
    });
  }

  get messages(): number {
    return this.#session.messages;
  }

  pause(): void {
    this.#crowded = true;
    this.#deadline.suspend();
    this.#pause();
  }

  resume(): void {
    this.#crowded = false;
    this.#deadline.restart(this.#session);
    this.#settle();
  }

  giveUp(): void {
    this.#perform(this.#session.abort(REPLIES.tooSlow));
  }

  dismiss(): void {
    this.#stopGreeting();
    this.#perform(this.#session.dismiss(REPLIES.shuttingDown));
  }

  /** Ends the session at once, even if the handler has not answered. */
  abort(): void {
    if (this.#closed) return;
    this.#perform(this.#session.abort(REPLIES.shuttingDown));
    this.#socket.end();
    if (!this.#closed) this.#socket.terminate();
  }

  received(socket: SmtpSocket, chunk: Buffer): void {
    // After STARTTLS the plain socket still reports the ciphertext. Ignore it.
    if (socket !== this.#socket) return;
    if (this.#cancelGreeting !== null) {
      this.#stopGreeting();
      this.#deps.log.debug("spoke before the greeting", { ip: this.ip });
      this.#perform(this.#session.abort(REPLIES.earlyTalker));
      return;
    }
    const waiting = this.#session.phase === "waiting";
    this.#perform(this.#session.receive(chunk));
    // If a client pipelines more than this, read on only after it has read its replies.
    if (chunk.length >= TURN_OCTETS) void this.#continueLater();
    if (waiting || this.#continuing || this.#crowded || this.#unsent !== "") this.#pause();
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

  /** The peer sends no more, but may still read: answer what the handler is working on. */
  peerEnded(socket: SmtpSocket): void {
    if (socket !== this.#socket) return;
    this.#peerEnded = true;
    this.#settle();
  }

  socketClosed(socket: SmtpSocket): void {
    // The close of the plain socket also closes the TLS socket, which reports it itself.
    if (socket !== this.#socket || this.#closed) return;
    this.#closed = true;
    this.#deadline.cancel();
    this.#stopGreeting();
    const { helo, tls, messages } = this.#session;
    this.#deps.log.debug("session ended", { ip: this.ip, helo, tls, messages });
    this.#session.close();
    this.#leave();
  }

  /** Errors with a code come from the socket or TLS. Any other error is a bug. */
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
    if (!this.#asking && !this.#closed) this.#reportMemory();
    // Octets of a message are progress, octets that complete no command are not. If the message waits, the deadline is
    // suspended.
    if (this.#crowded) this.#deadline.suspend();
    else if (actions.length > 0 || this.#session.receiving) this.#deadline.restart(this.#session);
    this.#settle();
  }

  /** Reports the memory of the current message. If all messages together use too much, this one waits. */
  #reportMemory(): void {
    const { held, receiving } = this.#session;
    this.#crowded = !this.#deps.intake.update(this, held, receiving || held > 0 ? "coming" : "none");
  }

  #carryOut(action: Action): void {
    const { handler } = this.#deps;
    if (action.kind === "write") this.#write(action.text);
    else if (action.kind === "startTls") this.#startTls();
    else if (action.kind === "recipient") void this.#ask(handler.recipient(action.address, action.envelope));
    else if (action.kind === "login") void this.#ask(handler.login(action.credentials, action.envelope));
    else if (action.kind === "message") {
      void this.#ask(handler.message(action.envelope, action.raw));
      this.#deps.intake.update(this, action.raw.length, "whole");
      this.#crowded = false;
    }
  }

  #write(text: string): void {
    if (this.#closed || this.#shutDown) return;
    if (this.#unsent !== "") {
      this.#unsent += text;
      return;
    }
    // Replies are ASCII, so octets equal characters. A negative count means a dead socket, soon closed.
    const taken = this.#socket.write(text);
    if (taken >= 0) this.#unsent = text.slice(taken);
  }

  async #ask(question: Promise<LoginVerdict | null>): Promise<void> {
    this.#asking = true;
    const verdict = await question;
    if (verdict !== null && "code" in verdict && verdict.code >= 500) await this.#tarpit();
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
    // The reply must be sent in plain text first. If the client does not read it, end the connection.
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

  #settle(): void {
    if (this.#closed || this.#unsent !== "") return;
    const { phase, hasBacklog } = this.#session;
    if (phase === "closed") this.#shutdown();
    else if (hasBacklog) void this.#continueLater();
    else if (phase !== "waiting" && !this.#crowded && !this.#continuing) this.#resume();
    if (this.#peerEnded && phase !== "waiting" && !hasBacklog) this.#socket.end();
  }

  /** Continues the session in the next tick of the event loop, after other connections. */
  async #continueLater(): Promise<void> {
    if (this.#continuing) return;
    this.#continuing = true;
    await yieldToEventLoop();
    this.#continuing = false;
    if (!this.#closed && this.#unsent === "") this.#perform(this.#session.proceed());
  }

  /** Closes our side and reads until the peer closes its own. Otherwise the peer could lose our last reply. */
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

  #onTimeout(): void {
    if (this.#session.phase === "closed" || this.#session.phase === "tls") this.#socket.terminate();
    else this.#perform(this.#session.abort(REPLIES.timeout));
  }

  #leave(): void {
    if (!this.#closed || this.#asking) return;
    this.#deps.intake.update(this, 0, "none");
    this.#deps.onClosed();
  }
}
