import { parseCommand } from "./command.ts";
import { DataReader } from "./data.ts";
import type { MessageFault, MessageResult } from "./kept-message.ts";
import { Input } from "./lines.ts";
import { formatReply, REPLIES, type Reply, reply } from "./reply.ts";
import type { Action, Phase, SessionOptions } from "./actions.ts";
import { type Chunk, endTransaction, envelopeOf, type Outcome, perform, type SessionState } from "./verbs.ts";

/** Errors of one client (syntax, sequence, unknown commands) after which it is sent away. */
export const MAX_ERRORS = 20;
/** Recipients refused in one session after which the client is sent away: it is guessing addresses. */
export const MAX_REFUSED_RECIPIENTS = 100;
/** Commands answered in a row, of tens of thousands in one piece; then others have a turn, and the client takes its replies. */
export const MAX_COMMANDS_IN_A_ROW = 100;
/** Octets a client may have sent ahead of an answer it must wait for. The listener stops reading long before. */
export const MAX_WAITING_OCTETS = 2 * 1024 * 1024;

const FAULT_REPLIES: Record<MessageFault, Reply> = {
  bareLineEnd: REPLIES.bareLineEnd,
  nul: REPLIES.nulInMessage,
  tooLarge: REPLIES.tooLarge,
};

/**
 * One SMTP session as a machine without I/O and clock: octets and answers go in, actions come out. After a `recipient`
 * or `message` action it reads nothing more until `answer`, so replies keep the order of pipelined commands (RFC 2920).
 */
export class Session {
  readonly #options: SessionOptions;
  readonly #input = new Input();
  #state: SessionState = { helo: null, plainSmtp: false, tls: null, transaction: null, transactions: 0 };
  #phase: Phase = "command";
  /** Commands answered since others had their turn. */
  #inARow = 0;
  /** Where the octets of a message go: after DATA, or those still to come of a chunk. */
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

  /** Whether commands that have come are left for `proceed`. */
  get behind(): boolean {
    return this.#phase === "command" && this.#inARow >= MAX_COMMANDS_IN_A_ROW;
  }

  get helo(): string | null {
    return this.#state.helo;
  }

  get tls(): string | null {
    return this.#state.tls;
  }

  /** Recipients refused so far. */
  get refusedRecipients(): number {
    return this.#refusedRecipients;
  }

  /** Messages answered 250 so far. */
  get messages(): number {
    return this.#messages;
  }

  /** Octets of an unfinished message in memory. */
  get held(): number {
    return (
      this.#state.transaction?.chunks?.held ?? (this.#reader instanceof DataReader ? this.#reader.held : 0)
    );
  }

  /** Whether octets of a message are coming in; those of a refused chunk, which are thrown away, are none. */
  get receiving(): boolean {
    const into = this.#reader instanceof DataReader ? this.#reader : this.#reader?.into;
    return into !== undefined && "feed" in into;
  }

  /** A number of its own for each transaction, 0 outside of one: begins with MAIL, ends with the answer to DATA. */
  get transaction(): number {
    const open = this.#state.transaction !== null || this.#question === "message";
    return open ? this.#state.transactions : 0;
  }

  /** The greeting (RFC 5321 §3.1). */
  greet(): Action[] {
    this.#say(reply(220, null, `${this.#options.hostname} ESMTP Postrider`));
    return this.#flush();
  }

  /** Takes what the peer sent; the session may keep `chunk`. */
  receive(chunk: Buffer): Action[] {
    if (this.#phase === "closed" || this.#phase === "tls") return [];
    this.#input.add(chunk);
    const waits = this.#phase === "waiting" || this.behind;
    if (waits && this.#input.length > MAX_WAITING_OCTETS) return this.abort(REPLIES.tooMuchInput);
    return this.behind ? [] : this.proceed();
  }

  /** Goes on with what has come, up to so many commands. */
  proceed(): Action[] {
    this.#inARow = 0;
    let more = true;
    while (more) {
      if (this.#phase === "data") more = this.#readData();
      else more = this.#phase === "command" && this.#readCommand();
    }
    return this.#flush();
  }

  /** The answer to the `recipient` (null = accepted) or `message` action asked last. */
  answer(verdict: Reply | null): Action[] {
    const question = this.#question;
    this.#question = null;
    if (this.#phase !== "waiting" || question === null) return [];
    this.#phase = "command";
    if (question === "message") this.#endMessage(verdict ?? REPLIES.ok);
    else this.#endRecipient(question.recipient, verdict);
    return this.proceed();
  }

  /** TLS stands. The client's knowledge of us and ours of it are forgotten (RFC 3207 §4.2). */
  secured(version: string): Action[] {
    if (this.#phase !== "tls") return [];
    this.#phase = "command";
    Object.assign(this.#state, { helo: null, plainSmtp: false, tls: version });
    return this.proceed();
  }

  /** Ends the session with `farewell`, a 421: at once, or as soon as the message or recipient in hand is answered. */
  dismiss(farewell: Reply): Action[] {
    if (this.#phase === "closed") return [];
    if (this.#phase === "tls") return this.close();
    this.#farewell = farewell;
    return this.proceed();
  }

  /** Says `farewell` and ends the session at once; what is in hand stays unanswered. */
  abort(farewell: Reply): Action[] {
    if (this.#phase === "closed") return [];
    if (this.#phase !== "tls") this.#say(farewell);
    return this.close();
  }

  /** Ends the session without a word: the peer has gone. */
  close(): Action[] {
    this.#end();
    return this.#flush();
  }

  #readCommand(): boolean {
    if (this.#farewell !== null) {
      this.#say(this.#farewell);
      return false;
    }
    const line = this.behind ? null : this.#input.line();
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
   * Whatever the client sent behind STARTTLS came in plain text, perhaps from someone in the middle: none of it may be
   * read as if it had come under TLS (command injection, CVE-2011-0411).
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
    if (ended) this.#endData(reader.result());
    return ended;
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

  /** Adds a reply to what is to be written. A 421 announces that the connection is closed (RFC 5321 §3.8). */
  #say(answer: Reply): void {
    if (this.#phase === "closed") return;
    this.#options.said?.(answer);
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
    // The client may take its time to close: nothing is held for it until then.
    if (this.#reader instanceof DataReader) this.#reader.discard();
    endTransaction(this.#state);
    this.#reader = null;
    this.#actions.push({ kind: "close" });
  }

  #flush(): Action[] {
    return this.#actions.splice(0);
  }
}
