import { ChunkReader } from "./chunks.ts";
import type { Command, Verb } from "./command.ts";
import type { Envelope } from "./envelope.ts";
import { beginLogin, LOGIN_MECHANISMS, type Login, type LoginRules, type LoginStep } from "./login.ts";
import type { MessageMemory } from "./message-memory.ts";
import { ehloReply, REPLIES, type Reply, reply } from "./reply.ts";

/** Name and limits of the server. */
export interface SessionLimits {
  /** Our name in the banner and in EHLO's answer. */
  hostname: string;
  maxMessageBytes: number;
  /** Recipients of one transaction. */
  maxRecipients: number;
  /** Set if the server takes submissions. Without it, AUTH is unknown. */
  logins?: LoginRules;
  /** Returns whether one more message may begin. Without it, always. */
  hasRoom?: () => boolean;
  /** Pool of memory for large messages. Without it, each message allocates its own. */
  memory?: MessageMemory;
}

/** A transaction from MAIL to the end of DATA (RFC 5321 §3.3). */
export interface Transaction {
  mailFrom: string;
  smtpUtf8: boolean;
  /** Size that MAIL announced (RFC 1870), or 0. */
  size: number;
  /** Accepted recipients, without duplicates. */
  rcptTo: string[];
  /** RCPT commands so far, including refused ones. */
  asked: number;
  /** The message so far, if it comes by BDAT. */
  chunks: ChunkReader | null;
}

/** A chunk after BDAT. Its octets are read whatever the reply is. */
export interface Chunk {
  size: number;
  last: boolean;
  /** The reader of the chunk, or the reply if the chunk is discarded. */
  into: ChunkReader | Reply;
}

/** State that commands read and change. */
export interface SessionState {
  /** Name in HELO or EHLO; null before. */
  helo: string | null;
  /** True if it was HELO. */
  plainSmtp: boolean;
  /** TLS version; null in plain text. */
  tls: string | null;
  /** Null before AUTH. */
  login: Login | null;
  transaction: Transaction | null;
  /** Transactions so far. */
  transactions: number;
}

/** The state before the first command. */
export const NEW_SESSION: Readonly<SessionState> = {
  helo: null,
  plainSmtp: false,
  tls: null,
  login: null,
  transaction: null,
  transactions: 0,
};

/** Result of a command: a reply, with the next phase if not a command; a question to the handler; a chunk; a login. */
export type Outcome =
  | { reply: Reply; next?: "data" | "startTls" | "close"; error?: boolean }
  | { askRecipient: string }
  | { chunk: Chunk }
  | { login: LoginStep };

type Performer<V extends Verb> = (state: SessionState, command: Command<V>, limits: SessionLimits) => Outcome;

/** Creates a reply that counts as an error of the client. */
function error(reply: Reply): Outcome {
  return { reply, error: true };
}

function mail(state: SessionState, { path, parameters }: Command<"MAIL">, limits: SessionLimits): Outcome {
  if (state.helo === null) return error(REPLIES.heloFirst);
  if (limits.logins?.required === true && state.login === null)
    return error(offersLogin(state, limits) ? REPLIES.loginNeeded : REPLIES.tlsNeeded);
  if (state.transaction !== null) return error(REPLIES.nestedMail);
  // RFC 1870 §6.1: refuse a message before it is sent if its announced size is too large.
  if ((parameters.size ?? 0) > limits.maxMessageBytes) return { reply: REPLIES.tooLarge };
  state.transaction = {
    mailFrom: path.address,
    smtpUtf8: parameters.smtpUtf8,
    size: parameters.size ?? 0,
    rcptTo: [],
    asked: 0,
    chunks: null,
  };
  state.transactions++;
  return { reply: REPLIES.senderOk };
}

function rcpt({ transaction }: SessionState, { path }: Command<"RCPT">, limits: SessionLimits): Outcome {
  if (transaction === null) return error(REPLIES.mailFirst);
  transaction.asked++;
  if (transaction.chunks !== null) return error(REPLIES.chunksBegun);
  if (path.beyondAscii && !transaction.smtpUtf8) return error(REPLIES.needsSmtpUtf8);
  if (transaction.rcptTo.length >= limits.maxRecipients) return { reply: REPLIES.tooManyRecipients };
  // A bounce goes to one sender. Several recipients are a sign of abuse. A submission may have any return path.
  if (transaction.mailFrom === "" && transaction.rcptTo.length > 0 && limits.logins === undefined)
    return { reply: REPLIES.oneBounceRecipient };
  const bare = !path.address.includes("@"); // Only Postmaster may have no domain, and means ours.
  const address = bare ? `${path.address}@${limits.hostname}` : path.address;
  const { logins } = limits;
  return logins === undefined ? { askRecipient: address } : submitTo(transaction, address, logins);
}

/** Takes a recipient of a submission at once, so that the replies to a whole envelope leave together. */
function submitTo({ rcptTo }: Transaction, address: string, { recipient }: LoginRules): Outcome {
  const refusal = recipient(address);
  if (refusal !== null) return error(refusal);
  if (!rcptTo.includes(address)) rcptTo.push(address);
  return { reply: REPLIES.recipientOk };
}

/** Returns the reply if no message may come now, else null. */
function notReady(transaction: Transaction | null): Reply | null {
  if (transaction === null) return REPLIES.mailFirst;
  if (transaction.rcptTo.length > 0) return null;
  return transaction.asked > 0 ? REPLIES.noRecipients : REPLIES.rcptFirst;
}

function data({ transaction }: SessionState, _command: Command<"DATA">, limits: SessionLimits): Outcome {
  // RFC 3030 §2: DATA and BDAT are not mixed.
  const refusal = transaction?.chunks ? REPLIES.chunksBegun : notReady(transaction);
  // Last chance to refuse before the content is sent.
  if (refusal === null && limits.hasRoom?.() === false) return { reply: REPLIES.noRoom };
  if (refusal === null) return { reply: REPLIES.startMail, next: "data" };
  return refusal === REPLIES.noRecipients ? { reply: refusal } : error(refusal);
}

/**
 * RFC 3030 §2: the octets follow without waiting for the reply, so those of a refused chunk are read and discarded. If
 * the size is malformed or too large, the octets could be read as commands, or take hours: close the connection.
 */
function bdat(state: SessionState, { size, last }: Command<"BDAT">, limits: SessionLimits): Outcome {
  const { transaction } = state;
  if (Number.isNaN(size)) return { reply: REPLIES.badChunk, next: "close" };
  if (size > limits.maxMessageBytes) return { reply: REPLIES.tooLarge, next: "close" };
  const refusal = notReady(transaction);
  if (transaction === null || refusal !== null)
    return { chunk: { size, last, into: refusal ?? REPLIES.mailFirst } };
  if (transaction.chunks === null && limits.hasRoom?.() === false) {
    // End the transaction, so that later chunks do not become a message without its start.
    state.transaction = null;
    return { chunk: { size, last, into: REPLIES.noRoom } };
  }
  transaction.chunks ??= new ChunkReader(limits.maxMessageBytes, limits.memory);
  return { chunk: { size, last, into: transaction.chunks } };
}

/** RFC 4954 §4: a password must not be sent in plain text. */
function offersLogin({ tls }: SessionState, { logins }: SessionLimits): boolean {
  return logins !== undefined && (tls !== null || logins.inPlainText);
}

function auth(state: SessionState, { mechanism, initial }: Command<"AUTH">, limits: SessionLimits): Outcome {
  if (state.helo === null) return error(REPLIES.heloFirst);
  if (state.login !== null || state.transaction !== null) return error(REPLIES.noLoginNow);
  return offersLogin(state, limits)
    ? { login: beginLogin(mechanism, initial) }
    : error(REPLIES.loginNeedsTls);
}

/** Ends a transaction whose message is not accepted. */
export function endTransaction(state: SessionState): void {
  state.transaction?.chunks?.discard();
  state.transaction = null;
}

/**
 * Returns what is known of the transaction so far.
 * @param ip the peer's address
 */
export function envelopeOf(state: SessionState, ip: string): Envelope {
  const { transaction, helo, tls, plainSmtp, login } = state;
  return {
    mailFrom: transaction?.mailFrom ?? "",
    rcptTo: [...(transaction?.rcptTo ?? [])],
    ip,
    helo: helo ?? "",
    tls,
    smtpUtf8: transaction?.smtpUtf8 ?? false,
    ...(transaction === null || transaction.size === 0 ? {} : { announcedOctets: transaction.size }),
    ...(plainSmtp ? { plainSmtp } : {}),
    ...(login === null ? {} : { login }),
  };
}

/** Handlers of the commands. EHLO, HELO and RSET end a transaction (RFC 5321 §4.1.4, §4.1.1.5). */
const PERFORMERS: { [V in Verb]: Performer<V> } = {
  EHLO: (state, { name }, limits) => {
    endTransaction(state);
    Object.assign(state, { helo: name, plainSmtp: false });
    const logins = offersLogin(state, limits) ? LOGIN_MECHANISMS : [];
    return { reply: ehloReply(limits.hostname, limits.maxMessageBytes, { tls: state.tls === null, logins }) };
  },
  HELO: (state, { name }, limits) => {
    endTransaction(state);
    Object.assign(state, { helo: name, plainSmtp: true });
    return { reply: reply(250, null, limits.hostname) };
  },
  MAIL: mail,
  RCPT: rcpt,
  DATA: data,
  BDAT: bdat,
  AUTH: auth,
  RSET: (state) => {
    endTransaction(state);
    return { reply: REPLIES.ok };
  },
  STARTTLS: (state) => {
    if (state.tls !== null) return error(REPLIES.alreadyTls);
    endTransaction(state);
    return { reply: REPLIES.startTls, next: "startTls" };
  },
  NOOP: () => ({ reply: REPLIES.ok }),
  VRFY: () => ({ reply: REPLIES.cannotVerify }),
  HELP: () => ({ reply: REPLIES.help }),
  QUIT: () => ({ reply: REPLIES.bye, next: "close" }),
  refused: ({ transaction }, { reply, recipient }) => {
    if (recipient === true && transaction !== null) transaction.asked++;
    return error(reply);
  },
};

/** Performs one command on the state. */
export function perform<V extends Verb>(
  state: SessionState,
  command: Command<V>,
  limits: SessionLimits,
): Outcome {
  const performer: Performer<V> = PERFORMERS[command.verb];
  return performer(state, command, limits);
}
