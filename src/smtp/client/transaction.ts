import { isAscii } from "node:buffer";
import { isAsciiText } from "../../core/text.ts";
import type { Capabilities } from "./capabilities.ts";
import { type OutboundMail, type SendResult, type Stage, type Timeouts, note } from "./delivery.ts";
import { CLOSING, explanation, isSuccess, type Reply, replyText } from "./reply-parser.ts";
import { EMPTY_DATA, dotStuffed } from "./stuffing.ts";
import type { Transport } from "./transport.ts";

/**
 * RSET before a transaction, which clears the previous one (RFC 5321 §4.1.1.5). `needed`: the previous
 * one was refused. `wanted`: it may have been, because its verdict has not come. If a server refuses a message and
 * keeps its envelope, as Postfix does by `smtpd_end_of_data_restrictions`, it would refuse the next MAIL.
 */
export type Reset = "none" | "wanted" | "needed";

/** Session and callbacks of a transaction. */
export interface TransactionDeps {
  transport: Transport;
  capabilities: Capabilities;
  timeouts: Timeouts;
  reset: Reset;
  transcript: string[];
  /**
   * Called once, when the next transaction may begin. With PIPELINING that is before the reply to this message (RFC
   * 2920 §3.1). `reset` is for the next one.
   */
  released: (reset: Reset) => void;
  /** Called with 1 when the content is written, and with -1 when its verdict has come or will not come. */
  onContent: (change: 1 | -1) => void;
}

interface Command {
  stage: Stage;
  line: string;
  timeoutMs: number;
  /** If this command is refused, continue: the next command's reply decides. */
  precaution?: boolean;
}

type Envelope = { kind: "go" } | { kind: "stopped"; result: SendResult };

const WITHDRAWN: SendResult = { kind: "withdrawn" };
const START_INPUT = 354;
/** RFC 5321 §4.1.2: an unquoted path has no control characters, spaces or angle brackets. */
const PATH = /^[^\x00-\x20\x7f<>]*$/;

/**
 * Sends one message to one recipient over an open session. Never throws. If the transport becomes unusable, closes it.
 */
export async function transact(deps: TransactionDeps, mail: OutboundMail): Promise<SendResult> {
  const misfit = unsendable(deps.capabilities, mail);
  if (misfit !== null) {
    note(deps.transcript, `* not sent: ${misfit.code} ${misfit.enhanced} ${misfit.text}`);
    // In a later turn, so that many such messages in a row do not grow the stack.
    await Promise.resolve();
    deps.released(deps.reset);
    return misfit;
  }
  // A message that is wanted continues in this turn: with PIPELINING, its commands leave with the content of the one before it.
  const withdrawn = isWithdrawn(mail);
  if (withdrawn !== false && (await withdrawn)) {
    deps.released(deps.reset);
    return WITHDRAWN;
  }
  const envelope = await sendEnvelope(deps, mail);
  if (envelope.kind === "stopped") {
    deps.released("needed");
    return envelope.result;
  }
  // The peer or our machine may have taken long since the first check.
  const withdrawnSince = isWithdrawn(mail);
  if (withdrawnSince !== false && (await withdrawnSince)) {
    deps.transport.close("the message was withdrawn");
    deps.released("needed");
    return WITHDRAWN;
  }
  return sendContent(deps, mail.raw);
}

/** Returns whether the owner no longer wants the message sent. It answers at once if the owner does. */
function isWithdrawn({ stillWanted }: OutboundMail): boolean | Promise<boolean> {
  const wanted = stillWanted?.() ?? true;
  return typeof wanted === "boolean" ? !wanted : wanted.then((still) => !still);
}

function isUtf8Mail(mail: OutboundMail): boolean {
  return mail.smtpUtf8 === true || !isAsciiText(mail.mailFrom) || !isAsciiText(mail.rcptTo);
}

function isEightBit(mail: OutboundMail): boolean {
  return mail.eightBit ?? !isAscii(mail.raw);
}

type Unsendable = SendResult & { kind: "unsendable" };

/** Returns why this peer can never take this message; null if it can. */
function unsendable(peer: Capabilities, mail: OutboundMail): Unsendable | null {
  const refuse = (code: number, enhanced: string, text: string): Unsendable => ({
    kind: "unsendable",
    stage: "mail",
    code,
    enhanced,
    text,
  });
  // A line end or bracket in an address would inject commands or parameters (SMTP injection).
  if (!PATH.test(mail.mailFrom)) return refuse(553, "5.1.7", "the sender address cannot be sent");
  if (!PATH.test(mail.rcptTo) || mail.rcptTo === "")
    return refuse(553, "5.1.3", "the recipient address cannot be sent");
  if (peer.maxSize !== null && mail.raw.length > peer.maxSize)
    return refuse(
      552,
      "5.3.4",
      `message of ${mail.raw.length} octets is over the peer's limit of ${peer.maxSize}`,
    );
  if (isUtf8Mail(mail) && !peer.smtpUtf8) return refuse(553, "5.6.7", "the peer does not take SMTPUTF8");
  if (isEightBit(mail) && !peer.eightBitMime)
    return refuse(554, "5.6.3", "the peer does not take 8-bit content");
  return null;
}

function envelopeCommands(deps: TransactionDeps, mail: OutboundMail): Command[] {
  const { capabilities: peer, timeouts } = deps;
  const parameters = [
    peer.size ? ` SIZE=${mail.raw.length}` : "",
    peer.eightBitMime && isEightBit(mail) ? " BODY=8BITMIME" : "",
    isUtf8Mail(mail) ? " SMTPUTF8" : "",
  ].join("");
  const commands: Command[] = [
    { stage: "mail", line: `MAIL FROM:<${mail.mailFrom}>${parameters}`, timeoutMs: timeouts.mail },
    { stage: "rcpt", line: `RCPT TO:<${mail.rcptTo}>`, timeoutMs: timeouts.rcpt },
    { stage: "data", line: "DATA", timeoutMs: timeouts.data },
  ];
  if (deps.reset === "none") return commands;
  const precaution = deps.reset === "wanted";
  return [{ stage: "mail", line: "RSET", timeoutMs: timeouts.mail, precaution }, ...commands];
}

/** Sends all commands in one burst if the peer has PIPELINING (RFC 2920), else one after another. */
async function sendEnvelope(deps: TransactionDeps, mail: OutboundMail): Promise<Envelope> {
  const commands = envelopeCommands(deps, mail);
  const bursts = deps.capabilities.pipelining ? [commands] : commands.map((command) => [command]);
  for (const burst of bursts) {
    const replies = await sendBurst(deps, burst);
    const stopped = burst.findIndex((command, at) => !isPositive(command, replies[at]));
    const command = burst[stopped];
    if (command === undefined) continue;
    const result = stoppedBy(deps, command, replies[stopped]);
    await endUnwantedData(deps, burst, replies);
    return { kind: "stopped", result };
  }
  return { kind: "go" };
}

async function sendBurst(deps: TransactionDeps, burst: readonly Command[]): Promise<Reply[]> {
  const octets = Buffer.from(burst.map((command) => `${command.line}\r\n`).join(""));
  const timeouts = burst.map((command) => command.timeoutMs);
  for (const command of burst) note(deps.transcript, `C: ${command.line}`);
  const { replies } = await deps.transport.exchange([octets], timeouts);
  for (const reply of replies) note(deps.transcript, `S: ${replyText(reply)}`);
  return replies;
}

function isPositive(command: Command, reply: Reply | undefined): boolean {
  if (reply === undefined) return false;
  if (command.precaution === true && reply.code >= 400) return reply.code !== CLOSING;
  return command.stage === "data" ? reply.code === START_INPUT : isSuccess(reply);
}

function stoppedBy(deps: TransactionDeps, command: Command, reply: Reply | undefined): SendResult {
  const { stage } = command;
  if (reply === undefined) return trouble(deps, stage, deps.transport.closeReason() ?? "no reply");
  if (reply.code === CLOSING) deps.transport.close("the peer closes the session");
  // If RSET is refused, or DATA gets 2xx, or another command gets 354, both ends disagree about the state.
  if (command.line === "RSET" || reply.code < 400) {
    deps.transport.close("protocol error");
    return trouble(deps, stage, `${command.line.slice(0, 4)} answered with ${replyText(reply)}`);
  }
  return toResult(stage, reply);
}

function toResult(stage: Stage, reply: Reply): SendResult {
  const { code, enhanced } = reply;
  return { kind: "reply", stage, code, enhanced, text: explanation(reply) };
}

function trouble(deps: TransactionDeps, stage: Stage, reason: string): SendResult {
  note(deps.transcript, `* ${stage}: ${reason}`);
  return { kind: "trouble", stage, reason };
}

/**
 * If a peer accepts a pipelined DATA after refusing an earlier command, an empty message ends it (RFC 2920 §3.1). If it
 * has accepted the recipient, that message would be delivered, so the transport is closed instead.
 */
async function endUnwantedData(
  deps: TransactionDeps,
  burst: readonly Command[],
  replies: readonly Reply[],
): Promise<void> {
  const replyTo = (stage: Stage): Reply | undefined =>
    replies[burst.findLastIndex((command) => command.stage === stage)];
  if (replyTo("data")?.code !== START_INPUT || deps.transport.closeReason() !== null) return;
  const recipient = replyTo("rcpt");
  if (recipient !== undefined && isSuccess(recipient)) return deps.transport.close("DATA cannot be ended");
  note(deps.transcript, "C: (empty message)");
  const { replies: endings } = await deps.transport.exchange([EMPTY_DATA], [deps.timeouts.final]);
  for (const reply of endings) note(deps.transcript, `S: ${replyText(reply)}`);
}

/** Sends the content and returns the result of the peer's reply. */
async function sendContent(deps: TransactionDeps, raw: Uint8Array): Promise<SendResult> {
  note(deps.transcript, `C: (message of ${raw.length} octets)`);
  const answered = deps.transport.exchange(dotStuffed(raw), [deps.timeouts.final]);
  deps.onContent(1);
  const { pipelining } = deps.capabilities;
  if (pipelining) deps.released("wanted");
  const { replies, trouble: reason, early } = await answered;
  deps.onContent(-1);
  const [reply] = replies;
  const result =
    reply === undefined ? trouble(deps, "final", reason ?? "no reply") : finalResult(deps, reply, early);
  if (!pipelining) deps.released(isTaken(result) ? "none" : "needed");
  return result;
}

/** Returns true if the peer has accepted the message. */
export function isTaken(result: SendResult): boolean {
  return result.kind === "reply" && result.code < 300;
}

function finalResult(deps: TransactionDeps, reply: Reply, early: boolean): SendResult {
  note(deps.transcript, `S: ${replyText(reply)}`);
  if (reply.code === CLOSING) deps.transport.close("the peer closes the session");
  // The peer would read the rest of the message as commands.
  if (early) deps.transport.close("answered before the end of the message");
  const plausible = isSuccess(reply) ? !early : reply.code >= 400;
  if (plausible) return toResult("final", reply);
  deps.transport.close("protocol error");
  return trouble(deps, "final", `message answered with ${replyText(reply)}${early ? " before its end" : ""}`);
}

/**
 * Checks whether a kept connection closed before the peer accepted MAIL. Then it has not seen the message, and another
 * connection may send it.
 */
export function wasClosedBefore(result: SendResult): boolean {
  if (result.kind === "trouble") return result.stage === "mail" && result.reason !== "aborted";
  return result.kind === "reply" && result.stage === "mail" && result.code === 421;
}
