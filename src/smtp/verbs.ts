import { ChunkReader } from "./chunks.ts";
import type { Command, Verb } from "./command.ts";
import type { Envelope } from "./envelope.ts";
import type { MessageMemory } from "./message-memory.ts";
import { ehloReply, REPLIES, type Reply, reply } from "./reply.ts";

/** What the server says of itself and what it takes. */
export interface SessionLimits {
  /** Our name in the banner and in EHLO's answer. */
  hostname: string;
  maxMessageBytes: number;
  /** Recipients of one transaction. */
  maxRecipients: number;
  /** Whether there is room for one more message; left out: always. */
  hasRoom?: () => boolean;
  /** Where large messages have their place; left out: each has its own. */
  memory?: MessageMemory;
}

/** A transaction from MAIL to the end of DATA (RFC 5321 §3.3). */
export interface Transaction {
  mailFrom: string;
  smtpUtf8: boolean;
  /** Recipients accepted, each once. */
  rcptTo: string[];
  /** RCPT commands answered so far, refused ones included. */
  asked: number;
  /** The message so far where it comes by BDAT. */
  chunks: ChunkReader | null;
}

/** What follows a BDAT: so many octets, which are read whatever is said to them. */
export interface Chunk {
  size: number;
  last: boolean;
  /** Where they go; or the answer to a chunk that is thrown away. */
  into: ChunkReader | Reply;
}

/** What commands read and change. */
export interface SessionState {
  /** Name given in HELO or EHLO; null before. */
  helo: string | null;
  /** Whether that was HELO. */
  plainSmtp: boolean;
  /** TLS version; null in plain text. */
  tls: string | null;
  transaction: Transaction | null;
  /** Transactions begun so far. */
  transactions: number;
}

/** An answer; with what comes next, where that is not the next command. Or a question, answered later. */
export type Outcome =
  | { reply: Reply; next?: "data" | "startTls" | "close"; error?: boolean }
  | { askRecipient: string }
  | { chunk: Chunk };

type Performer<V extends Verb> = (state: SessionState, command: Command<V>, limits: SessionLimits) => Outcome;

/** An error of the client, counted against it. */
function error(reply: Reply): Outcome {
  return { reply, error: true };
}

function mail(state: SessionState, { path, parameters }: Command<"MAIL">, limits: SessionLimits): Outcome {
  if (state.helo === null) return error(REPLIES.heloFirst);
  if (state.transaction !== null) return error(REPLIES.nestedMail);
  // RFC 1870 §6.1: a message announced as too large is refused before it is sent.
  if ((parameters.size ?? 0) > limits.maxMessageBytes) return { reply: REPLIES.tooLarge };
  state.transaction = {
    mailFrom: path.address,
    smtpUtf8: parameters.smtpUtf8,
    rcptTo: [],
    asked: 0,
    chunks: null,
  };
  state.transactions++;
  return { reply: REPLIES.senderOk };
}

function rcpt({ transaction }: SessionState, { path }: Command<"RCPT">, limits: SessionLimits): Outcome {
  if (transaction === null) return error(REPLIES.mailFirst);
  if (transaction.chunks !== null) return error(REPLIES.chunksBegun);
  if (path.beyondAscii && !transaction.smtpUtf8) return error(REPLIES.needsSmtpUtf8);
  if (transaction.rcptTo.length >= limits.maxRecipients) return { reply: REPLIES.tooManyRecipients };
  // A bounce goes back to the one who sent: many recipients of one are a sign of abuse.
  if (transaction.mailFrom === "" && transaction.rcptTo.length > 0)
    return { reply: REPLIES.oneBounceRecipient };
  transaction.asked++;
  const bare = !path.address.includes("@"); // Only Postmaster may come without a domain, and is ours.
  return { askRecipient: bare ? `${path.address}@${limits.hostname}` : path.address };
}

/** Why no message may come now; null where it may. */
function notReady(transaction: Transaction | null): Reply | null {
  if (transaction === null) return REPLIES.mailFirst;
  if (transaction.rcptTo.length > 0) return null;
  return transaction.asked > 0 ? REPLIES.noRecipients : REPLIES.rcptFirst;
}

function data({ transaction }: SessionState, _command: Command<"DATA">, limits: SessionLimits): Outcome {
  // RFC 3030 §2: DATA and BDAT are not mixed.
  const refusal = transaction?.chunks ? REPLIES.chunksBegun : notReady(transaction);
  // This is the last moment to say no at little cost to either side.
  if (refusal === null && limits.hasRoom?.() === false) return { reply: REPLIES.noRoom };
  if (refusal === null) return { reply: REPLIES.startMail, next: "data" };
  return refusal === REPLIES.noRecipients ? { reply: refusal } : error(refusal);
}

/**
 * RFC 3030 §2: the octets follow without waiting for the answer, so those of a refused chunk are read and thrown away.
 * One of unknown or unwelcome length would be read for commands, or for hours: the connection ends.
 */
function bdat(state: SessionState, { size, last }: Command<"BDAT">, limits: SessionLimits): Outcome {
  const { transaction } = state;
  if (Number.isNaN(size)) return { reply: REPLIES.badChunk, next: "close" };
  if (size > limits.maxMessageBytes) return { reply: REPLIES.tooLarge, next: "close" };
  const refusal = notReady(transaction);
  if (transaction === null || refusal !== null)
    return { chunk: { size, last, into: refusal ?? REPLIES.mailFirst } };
  if (transaction.chunks === null && limits.hasRoom?.() === false) {
    // The chunks behind it must not be taken for a message without its beginning.
    state.transaction = null;
    return { chunk: { size, last, into: REPLIES.noRoom } };
  }
  transaction.chunks ??= new ChunkReader(limits.maxMessageBytes, limits.memory);
  return { chunk: { size, last, into: transaction.chunks } };
}

/** Ends a transaction whose message is not taken. */
export function endTransaction(state: SessionState): void {
  state.transaction?.chunks?.discard();
  state.transaction = null;
}

/** What is known of the transaction and of who brings it, by now. `ip`: the peer's address. */
export function envelopeOf({ transaction, helo, tls, plainSmtp }: SessionState, ip: string): Envelope {
  return {
    mailFrom: transaction?.mailFrom ?? "",
    rcptTo: [...(transaction?.rcptTo ?? [])],
    ip,
    helo: helo ?? "",
    tls,
    smtpUtf8: transaction?.smtpUtf8 ?? false,
    ...(plainSmtp ? { plainSmtp } : {}),
  };
}

/** What each command does. EHLO, HELO and RSET end a transaction without a trace (RFC 5321 §4.1.4, §4.1.1.5). */
const PERFORMERS: { [V in Verb]: Performer<V> } = {
  EHLO: (state, { name }, limits) => {
    endTransaction(state);
    Object.assign(state, { helo: name, plainSmtp: false });
    return { reply: ehloReply(limits.hostname, limits.maxMessageBytes, state.tls === null) };
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
  refused: (_state, { reply }) => error(reply),
};

/** Performs one command on the state; says what to answer or to ask. */
export function perform<V extends Verb>(
  state: SessionState,
  command: Command<V>,
  limits: SessionLimits,
): Outcome {
  const performer: Performer<V> = PERFORMERS[command.verb];
  return performer(state, command, limits);
}
