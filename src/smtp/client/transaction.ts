import { isAscii } from "node:buffer";
import { isAsciiText } from "../../core/ascii.ts";
import type { Capabilities } from "./capabilities.ts";
import type { OutboundMail, SendResult, Stage, Timeouts } from "./delivery.ts";
import { CLOSING, explanation, isSuccess, type Reply, replyText } from "./reply-parser.ts";
import { note } from "./transcript.ts";
import { EMPTY_DATA, stuffed } from "./stuffing.ts";
import type { Wire } from "./wire.ts";

/**
 * Whether the transaction begins with RSET, which clears what one before it has left (RFC 5321 §4.1.1.5). `needed` behind
 * one that was refused. `wanted` where it may have been: behind a message without a verdict yet, which a server may refuse
 * and keep its envelope for the next MAIL to be refused too, as Postfix does by `smtpd_end_of_data_restrictions`.
 */
export type Reset = "none" | "wanted" | "needed";

/** A session as a transaction needs it. */
export interface TransactionDeps {
  wire: Wire;
  capabilities: Capabilities;
  timeouts: Timeouts;
  reset: Reset;
  transcript: string[];
  /**
   * Called once when the next transaction may begin on this wire, which with PIPELINING is before the reply to this
   * message (RFC 2920 §3.1). `reset` is that of the next one.
   */
  released: (reset: Reset) => void;
  /** Called with 1 when the message is given to the wire, with -1 when its verdict is here or will not come. */
  content: (change: 1 | -1) => void;
}

interface Command {
  stage: Stage;
  line: string;
  timeoutMs: number;
  /** Refused or not, the next command tells whether it may go on. */
  precaution?: boolean;
}

type Envelope = { kind: "go" } | { kind: "stopped"; result: SendResult };

const WITHDRAWN: SendResult = { kind: "withdrawn" };
const START_INPUT = 354;
/** RFC 5321 §4.1.2 allows no control characters, spaces or angle brackets in an unquoted path. */
const PATH = /^[^\x00-\x20\x7f<>]*$/;

/** Sends one message to one recipient over an open session. Never throws; cuts the wire where it can no longer be used. */
export async function transact(deps: TransactionDeps, mail: OutboundMail): Promise<SendResult> {
  const misfit = unsendable(deps.capabilities, mail);
  if (misfit !== null) {
    note(deps.transcript, `* not sent: ${misfit.code} ${misfit.enhanced} ${misfit.text}`);
    // In a later turn: many such messages in a row must not pile up on the stack.
    await Promise.resolve();
    deps.released(deps.reset);
    return misfit;
  }
  if (await isWithdrawn(mail)) {
    deps.released(deps.reset);
    return WITHDRAWN;
  }
  const envelope = await sendEnvelope(deps, mail);
  if (envelope.kind === "stopped") {
    deps.released("needed");
    return envelope.result;
  }
  // A peer may have let us wait, and so may our own machine.
  if (await isWithdrawn(mail)) {
    deps.wire.cut("the message is not to go any more");
    deps.released("needed");
    return WITHDRAWN;
  }
  return sendContent(deps, mail.raw);
}

async function isWithdrawn({ mayGo }: OutboundMail): Promise<boolean> {
  return mayGo !== undefined && !(await mayGo());
}

function isUtf8Mail(mail: OutboundMail): boolean {
  return mail.smtpUtf8 === true || !isAsciiText(mail.mailFrom) || !isAsciiText(mail.rcptTo);
}

function isEightBit(mail: OutboundMail): boolean {
  return mail.eightBit ?? !isAscii(mail.raw);
}

type Unsendable = SendResult & { kind: "unsendable" };

/** What keeps this message from this peer for good; null where nothing does. */
function unsendable(peer: Capabilities, mail: OutboundMail): Unsendable | null {
  const refuse = (code: number, enhanced: string, text: string): Unsendable => ({
    kind: "unsendable",
    stage: "mail",
    code,
    enhanced,
    text,
  });
  // A line end or bracket in an address would smuggle commands or parameters in (SMTP injection).
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

/** All commands in one burst where the peer has PIPELINING (RFC 2920), else one after the other. */
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
  const { replies } = await deps.wire.exchange([octets], timeouts);
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
  if (reply === undefined) return trouble(deps, stage, deps.wire.broken() ?? "no reply");
  if (reply.code === CLOSING) deps.wire.cut("the peer closes the session");
  // A refused RSET, a 2xx to DATA or a 354 to anything else: the two ends no longer agree on where they are.
  if (command.line === "RSET" || reply.code < 400) {
    deps.wire.cut("protocol error");
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
 * A peer may take a pipelined DATA though it has refused what came before: then an empty message ends it (RFC 2920
 * §3.1). Where it has taken the recipient too, that message would arrive; the wire is cut instead.
 */
async function endUnwantedData(
  deps: TransactionDeps,
  burst: readonly Command[],
  replies: readonly Reply[],
): Promise<void> {
  const replyTo = (stage: Stage): Reply | undefined =>
    replies[burst.findLastIndex((command) => command.stage === stage)];
  if (replyTo("data")?.code !== START_INPUT || deps.wire.broken() !== null) return;
  const recipient = replyTo("rcpt");
  if (recipient !== undefined && isSuccess(recipient)) return deps.wire.cut("DATA cannot be ended");
  note(deps.transcript, "C: (empty message)");
  const { replies: endings } = await deps.wire.exchange([EMPTY_DATA], [deps.timeouts.final]);
  for (const reply of endings) note(deps.transcript, `S: ${replyText(reply)}`);
}

/** The message, and the reply by which the peer takes it over or not. */
async function sendContent(deps: TransactionDeps, raw: Uint8Array): Promise<SendResult> {
  note(deps.transcript, `C: (message of ${raw.length} octets)`);
  const answered = deps.wire.exchange(stuffed(raw), [deps.timeouts.final]);
  deps.content(1);
  const { pipelining } = deps.capabilities;
  if (pipelining) deps.released("wanted");
  const { replies, trouble: reason, early } = await answered;
  deps.content(-1);
  const [reply] = replies;
  const result =
    reply === undefined ? trouble(deps, "final", reason ?? "no reply") : finalResult(deps, reply, early);
  if (!pipelining) deps.released(isTaken(result) ? "none" : "needed");
  return result;
}

/** Whether the peer has taken the message over. */
export function isTaken(result: SendResult): boolean {
  return result.kind === "reply" && result.code < 300;
}

function finalResult(deps: TransactionDeps, reply: Reply, early: boolean): SendResult {
  note(deps.transcript, `S: ${replyText(reply)}`);
  if (reply.code === CLOSING) deps.wire.cut("the peer closes the session");
  // What is left of the message would be read as commands.
  if (early) deps.wire.cut("answered before the end of the message");
  const plausible = isSuccess(reply) ? !early : reply.code >= 400;
  if (plausible) return toResult("final", reply);
  deps.wire.cut("protocol error");
  return trouble(deps, "final", `message answered with ${replyText(reply)}${early ? " before its end" : ""}`);
}
