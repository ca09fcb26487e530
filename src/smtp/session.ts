import { parseCommand } from "./command.ts";
import { DataReader } from "./data.ts";
import { AMBIGUOUS, FAULT_REPLIES, type MessageResult } from "./message-buffer.ts";
import { InputBuffer } from "./input-buffer.ts";
import { formatReply, REPLIES, type Reply, reply } from "./reply.ts";
import type { Action, Phase, SessionOptions } from "./actions.ts";
import { type Chunk, endTransaction, envelopeOf, type Outcome, perform, type SessionState } from "./verbs.ts";

/** If a client makes this many errors (syntax, sequence, unknown commands), the session ends. */
export const MAX_ERRORS = 20;
/** If this many recipients are refused, the session ends: the client is guessing addresses. */
export const MAX_REFUSED_RECIPIENTS = 100;
/**
 * Commands answered in a row. A piece may hold tens of thousands; after these, other connections are served, and the
 * client has to read its replies.
 */
export const MAX_COMMANDS_IN_A_ROW = 100;
/** Octets a client may send ahead while it must wait for a reply. The connection stops reading long before. */
export const MAX_WAITING_OCTETS = 2 * 1024 * 1024;

/**
 * An SMTP session as a state machine without I/O and clock: octets and answers in, actions out. After a `recipient` or
 * `message` action it reads nothing until `answer`, so replies keep the order of pipelined commands (RFC 2920).
 */
export class Session {
  readonly #options: SessionOptions;
  readonly #input = new InputBuffer();
  #state: SessionState = { helo: null, plainSmtp: false, tls: null, transaction: null, transactions: 0 };
  #phase: Phase = "command";
  /** Commands answered since other connections were served. */
  #inARow = 0;
  /** The reader of message octets: after DATA, or for the rest of a chunk. */
  #reader: DataReader | (Chunk & { left: number }) | null = null;
  #question: "message" | { recipient: string } | null = null;
  #farewell: Reply | null = null;
  #errors = 0;
  #refusedRecipients = 0;
  #messages = 0;
  readonly #actions: Action[] = [];

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  get phase(): Phase {
    return this.#phase;
  }

  /** True if received commands wait for `proceed`. */
  get hasBacklog(): boolean {
    return this.#phase === "command" && this.#inARow >= MAX_COMMANDS_IN_A_ROW;
  }

  get helo(): string | null {
    return this.#state.helo;
  }

  get tls(): string | null {
    return this.#state.tls;
  }

  get refusedRecipients(): number {
    return this.#refusedRecipients;
  }

  get messages(): number {
    return this.#messages;
  }

  /** Octets of an unfinished message in memory. */
  get held(): number {
    return (
      this.#state.transaction?.chunks?.held ?? (this.#reader instanceof DataReader ? this.#reader.held : 0)
    );
  }

  /** True if octets of a message are being received. Those of a refused chunk do not count. */
  get receiving(): boolean {
    const into = this.#reader instanceof DataReader ? this.#reader : this.#reader?.into;
    return into !== undefined && "feed" in into;
  }

  /** Number of the current transaction, from MAIL to the reply to DATA; 0 if there is none. */
  get transaction(): number {
    const open = this.#state.transaction !== null || this.#question === "message";
    return open ? this.#state.transactions : 0;
  }

  /** Returns the greeting (RFC 5321 §3.1). */
  greet(): Action[] {
    this.#say(reply(220, null, `${this.#options.hostname} ESMTP Postrider`));
    return this.#flush();
  }

  /** Handles received octets. The session may keep `chunk`. */
  receive(chunk: Buffer): Action[] {
    if (this.#phase === "closed" || this.#phase === "tls") return [];
    this.#input.add(chunk);
    const waits = this.#phase === "waiting" || this.hasBacklog;
    if (waits && this.#input.length > MAX_WAITING_OCTETS) return this.abort(REPLIES.tooMuchInput);
    return this.hasBacklog ? [] : this.proceed();
  }

  /** Continues with buffered octets, up to a number of commands. */
  proceed(): Action[] {
    this.#inARow = 0;
    let more = true;
    while (more) {
      if (this.#phase === "data") more = this.#readData();
      else more = this.#phase === "command" && this.#readCommand();
    }
    return this.#flush();
  }

  /** Takes the answer to the last `recipient` (null accepts) or `message` action. */
  answer(verdict: Reply | null): Action[] {
    const question = this.#question;
    this.#question = null;
    if (this.#phase !== "waiting" || question === null) return [];
    this.#phase = "command";
    if (question === "message") this.#endMessage(verdict ?? REPLIES.ok);
    else this.#endRecipient(question.recipient, verdict);
    return this.proceed();
  }

  /** The TLS handshake is done: forgets HELO and EHLO (RFC 3207 §4.2). */
  secured(version: string): Action[] {
    if (this.#phase !== "tls") return [];
    this.#phase = "command";
    Object.assign(this.#state, { helo: null, plainSmtp: false, tls: version });
    return this.proceed();
  }

  /** Ends the session with `farewell`, a 421, after the handler's answer if it is working. */
  dismiss(farewell: Reply): Action[] {
    if (this.#phase === "closed") return [];
    if (this.#phase === "tls") return this.close();
    this.#farewell = farewell;
    return this.proceed();
  }

  /** Sends `farewell` and ends the session at once, even if the handler has not answered. */
  abort(farewell: Reply): Action[] {
    if (this.#phase === "closed") return [];
    if (this.#phase !== "tls") this.#say(farewell);
    return this.close();
  }

  /** Ends the session without a reply, because the peer has gone. */
  close(): Action[] {
    this.#end();
    return this.#flush();
  }

  #readCommand(): boolean {
    if (this.#farewell !== null) {
      this.#say(this.#farewell);
      return false;
    }
    const line = this.hasBacklog ? null : this.#input.line();
    if (line === null) return false;
    this.#inARow++;
    const command =
      typeof line === "string" ? parseCommand(line) : ({ verb: "refused", reply: line } as const);
    this.#act(perform(this.#state, command, this.#options));
    return true;
  }

  #act(outcome: Outcome): void {
    if ("chunk" in outcome) {
      this.#phase = "data";
      this.#reader = { ...outcome.chunk, left: outcome.chunk.size };
      return;
    }
    if ("askRecipient" in outcome) {
      const address = outcome.askRecipient;
      const envelope = envelopeOf(this.#state, this.#options.ip);
      this.#ask({ recipient: address }, { kind: "recipient", address, envelope });
      return;
    }
    this.#say(outcome.reply);
    if (outcome.error === true && ++this.#errors >= MAX_ERRORS) this.#say(REPLIES.tooManyErrors);
    if (outcome.next === "data") this.#startData();
    if (outcome.next === "startTls") this.#startTls();
    if (outcome.next === "close") this.#end();
  }

  #startData(): void {
    this.#phase = "data";
    this.#reader = new DataReader(this.#options.maxMessageBytes, this.#options.memory);
  }

  /**
   * Octets after STARTTLS came in plain text, perhaps from a man in the middle. They are discarded, so that they cannot
   * be read as if they had come under TLS (command injection, CVE-2011-0411).
   */
  #startTls(): void {
    this.#phase = "tls";
    this.#input.clear();
    this.#actions.push({ kind: "startTls" });
  }

  #readData(): boolean {
    const reader = this.#reader;
    if (reader === null) return false;
    return reader instanceof DataReader ? this.#readMessage(reader) : this.#readChunk(reader);
  }

  #readMessage(reader: DataReader): boolean {
    let ended = false;
    this.#input.take((bytes) => {
      const end = reader.feed(bytes, 0);
      ended = end >= 0;
      return ended ? end : bytes.length;
    });
    if (!ended) return false;
    const result = reader.result();
    this.#endData(result);
    if ("fault" in result && AMBIGUOUS.has(result.fault)) this.#say(REPLIES.ambiguousMessage);
    return true;
  }

  #readChunk(chunk: Chunk & { left: number }): boolean {
    this.#input.take((bytes) => {
      const piece = bytes.subarray(0, chunk.left);
      chunk.left -= piece.length;
      if ("feed" in chunk.into) chunk.into.feed(piece);
      return piece.length;
    });
    if (chunk.left > 0) return false;
    this.#phase = "command";
    this.#reader = null;
    if ("code" in chunk.into) this.#say(chunk.into);
    else this.#endChunk(chunk.into.end(chunk.last), chunk.size);
    return true;
  }

  #endChunk(result: MessageResult | null, size: number): void {
    if (result === null) this.#say(reply(250, "2.0.0", `${size} octets received`));
    else this.#endData(result);
  }

  #endData(result: MessageResult): void {
    const envelope = envelopeOf(this.#state, this.#options.ip);
    this.#state.transaction = null;
    this.#reader = null;
    this.#phase = "command";
    if ("fault" in result) this.#say(FAULT_REPLIES[result.fault]);
    else this.#ask("message", { kind: "message", envelope, raw: result.raw });
  }

  #ask(question: "message" | { recipient: string }, action: Action): void {
    this.#question = question;
    this.#phase = "waiting";
    this.#actions.push(action);
  }

  #endMessage(verdict: Reply): void {
    if (verdict.code < 300) this.#messages++;
    this.#say(verdict);
  }

  #endRecipient(address: string, verdict: Reply | null): void {
    const rcptTo = this.#state.transaction?.rcptTo;
    if (verdict === null && rcptTo?.includes(address) === false) rcptTo.push(address);
    this.#say(verdict ?? REPLIES.recipientOk);
    if (verdict !== null && ++this.#refusedRecipients >= MAX_REFUSED_RECIPIENTS)
      this.#say(REPLIES.tooManyErrors);
  }

  /** Adds a reply to the output. 421 also closes the connection (RFC 5321 §3.8). */
  #say(answer: Reply): void {
    if (this.#phase === "closed") return;
    this.#options.onReply?.(answer);
    const text = formatReply(answer);
    const last = this.#actions.at(-1);
    if (last?.kind === "write") last.text += text;
    else this.#actions.push({ kind: "write", text });
    if (answer.code === 421) this.#end();
  }

  #end(): void {
    if (this.#phase === "closed") return;
    this.#phase = "closed";
    this.#input.clear();
    // The client may take its time to close, so free the memory now.
    if (this.#reader instanceof DataReader) this.#reader.discard();
    endTransaction(this.#state);
    this.#reader = null;
    this.#actions.push({ kind: "close" });
  }

  #flush(): Action[] {
    return this.#actions.splice(0);
  }
}
