import { parseCommand } from "./command.ts";
import type { Envelope, LoginVerdict } from "./envelope.ts";
import { challenge, continueLogin, type Credentials, type LoginStep } from "./login.ts";
import { FAULT_REPLIES, type MessageResult } from "./message-buffer.ts";
import { chunkAfterBdat, type MessageInput, messageAfterData } from "./message-input.ts";
import { InputBuffer } from "./input-buffer.ts";
import { formatReply, REPLIES, type Reply, reply } from "./reply.ts";
import {
  MAX_COMMANDS_IN_A_ROW,
  MAX_ERRORS,
  MAX_LOGIN_FAILURES,
  MAX_REFUSED_RECIPIENTS,
  MAX_WAITING_OCTETS,
} from "./session-limits.ts";
import type { Action, Phase, SessionOptions } from "./actions.ts";
import {
  endTransaction,
  envelopeOf,
  type Outcome,
  NEW_SESSION,
  perform,
  type SessionState,
} from "./verbs.ts";

/** The question to the handler whose answer the session waits for. */
type Question = "message" | { recipient: string } | { login: Credentials };

/**
 * An SMTP session as a state machine without I/O and clock: octets and answers in, actions out. After a `recipient` or
 * `message` action it reads nothing until `answer`, so replies keep the order of pipelined commands (RFC 2920).
 */
export class Session {
  readonly #options: SessionOptions;
  readonly #input = new InputBuffer();
  #state: SessionState = { ...NEW_SESSION };
  #phase: Phase;
  /** Commands answered since other connections were served. */
  #inARow = 0;
  /** The reader of message octets: after DATA, or for the rest of a chunk. */
  #reader: MessageInput | null = null;
  /** The question of AUTH that the next line answers. */
  #challenge: Extract<LoginStep, { ask: string }> | null = null;
  #question: Question | null = null;
  #farewell: Reply | null = null;
  #errors = 0;
  #refusedRecipients = 0;
  #failedLogins = 0;
  #messages = 0;
  readonly #actions: Action[] = [];

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#phase = options.implicitTls === true ? "tls" : "command";
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
    return this.#state.transaction?.chunks?.held ?? this.#reader?.held ?? 0;
  }

  /** True if octets of a message are being received. Those of a refused chunk do not count. */
  get receiving(): boolean {
    return this.#reader?.isMessage === true;
  }

  get #envelope(): Envelope {
    return envelopeOf(this.#state, this.#options.ip);
  }

  /** Number of the current transaction, from MAIL to the reply to DATA; 0 if there is none. */
  get transaction(): number {
    const open = this.#state.transaction !== null || this.#question === "message";
    return open ? this.#state.transactions : 0;
  }

  /** Returns the greeting (RFC 5321 §3.1). */
  greet(): Action[] {
    this.#say(reply(220, null, `${this.#options.hostname} ESMTP Postrider`));
    return this.#actions.splice(0);
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
    return this.#actions.splice(0);
  }

  /** Takes the answer to the last `recipient` (null accepts), `message` or `login` action. */
  answer(verdict: LoginVerdict | null): Action[] {
    const question = this.#question;
    this.#question = null;
    if (this.#phase !== "waiting" || question === null) return [];
    this.#phase = "command";
    if (question !== "message" && "login" in question) this.#endLogin(question.login.user, verdict);
    else if (verdict !== null && "identity" in verdict) throw new Error("only a login has an identity");
    else if (question === "message") this.#endMessage(verdict ?? REPLIES.ok);
    else this.#endRecipient(question.recipient, verdict);
    return this.proceed();
  }

  /** The TLS handshake is done: forgets what came before (RFC 3207 §4.2). */
  secured(version: string): Action[] {
    if (this.#phase !== "tls") return [];
    this.#phase = "command";
    Object.assign(this.#state, { helo: null, plainSmtp: false, tls: version, login: null });
    return this.#options.implicitTls === true ? this.greet() : this.proceed();
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
    return this.#actions.splice(0);
  }

  #readCommand(): boolean {
    if (this.#farewell !== null) {
      this.#say(this.#farewell);
      return false;
    }
    const line = this.hasBacklog ? null : this.#input.line();
    if (line === null) return false;
    this.#inARow++;
    const { logins } = this.#options;
    if (this.#challenge !== null) this.#stepLogin(continueLogin(this.#challenge, line));
    else if (typeof line !== "string") this.#act({ reply: line, error: true });
    else this.#act(perform(this.#state, parseCommand(line, logins !== undefined), this.#options));
    return true;
  }

  #stepLogin(step: LoginStep): void {
    this.#challenge = "ask" in step ? step : null;
    if ("ask" in step) this.#say(challenge(step.ask));
    else if ("reply" in step) this.#act({ reply: step.reply, error: true });
    else {
      const { credentials } = step;
      this.#ask({ login: credentials }, { kind: "login", credentials, envelope: this.#envelope });
    }
  }

  #endLogin(user: string, verdict: LoginVerdict | null): void {
    if (verdict !== null && "identity" in verdict) {
      this.#state.login = { user, identity: verdict.identity };
      this.#say(REPLIES.loggedIn);
      return;
    }
    this.#say(verdict ?? REPLIES.wrongLogin);
    if (++this.#failedLogins >= MAX_LOGIN_FAILURES) this.#say(REPLIES.tooManyErrors);
  }

  #act(outcome: Outcome): void {
    if ("chunk" in outcome) {
      this.#phase = "data";
      this.#reader = chunkAfterBdat(outcome.chunk);
      return;
    }
    if ("login" in outcome) {
      this.#stepLogin(outcome.login);
      return;
    }
    if ("askRecipient" in outcome) {
      const address = outcome.askRecipient;
      this.#ask({ recipient: address }, { kind: "recipient", address, envelope: this.#envelope });
      return;
    }
    this.#say(outcome.reply);
    if (outcome.error === true && ++this.#errors >= MAX_ERRORS) this.#say(REPLIES.tooManyErrors);
    if (outcome.next === "data") {
      this.#phase = "data";
      this.#reader = messageAfterData(this.#options);
    }
    if (outcome.next === "startTls") this.#startTls();
    if (outcome.next === "close") this.#end();
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
    const end = this.#reader?.read(this.#input) ?? null;
    if (end === null) return false;
    this.#reader = null;
    this.#phase = "command";
    if ("reply" in end) this.#say(end.reply);
    else {
      this.#endData(end.result);
      if (end.ambiguous) this.#say(REPLIES.ambiguousMessage);
    }
    return true;
  }

  #endData(result: MessageResult): void {
    const envelope = this.#envelope;
    this.#state.transaction = null;
    if ("fault" in result) this.#say(FAULT_REPLIES[result.fault]);
    else this.#ask("message", { kind: "message", envelope, raw: result.raw });
  }

  #ask(question: Question, action: Action): void {
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
    this.#reader?.discard();
    endTransaction(this.#state);
    this.#reader = null;
    this.#actions.push({ kind: "close" });
  }
}
