import { type Capabilities, NO_CAPABILITIES, readCapabilities } from "./capabilities.ts";
import type {
  Credentials,
  Destination,
  HostSecurity,
  PeerResult,
  Stage,
  Timeouts,
  TlsMode,
} from "./delivery.ts";
import { describeCertificate } from "./peer-certificate.ts";
import { CLOSING, explanation, isSuccess, type Reply, replyText } from "./reply-parser.ts";
import { note } from "./transcript.ts";
import type { WireDeps } from "./line.ts";
import { openWire, type TlsState, type Wire } from "./wire.ts";

/** Everything one connection is opened with. */
export interface OpeningOptions
  extends Pick<Destination, "port" | "tls" | "implicitTls" | "auth" | "ehloName"> {
  /** Name of the host, which its certificate must bear. */
  host: string;
  ip: string;
  /** The policy that `tls` comes of; absent where it is the destination's own. */
  security?: HostSecurity;
  timeouts: Timeouts;
}

/** A session that is ready for MAIL. */
export interface OpenSession {
  wire: Wire;
  capabilities: Capabilities;
  tls: TlsState | null;
  /** Lines on the TLS of this session, for the transcripts of later messages on it. */
  tlsLines: readonly string[];
}

/** What came of opening a session. */
export type Opening = { kind: "open"; session: OpenSession } | { kind: "failed"; result: PeerResult };

/** Ends the opening with its outcome, from whichever step it happens in. Never leaves this file. */
class Stop extends Error {
  readonly result: PeerResult;
  constructor(result: PeerResult) {
    super(result.kind);
    this.result = result;
  }
}

interface Step {
  wire: Wire;
  options: OpeningOptions;
  transcript: string[];
}

/**
 * Connects, takes the banner, says EHLO, turns to TLS and logs in, as far as the options want it.
 * @param transcript gets a line for each command and reply
 */
export async function openSession(
  deps: WireDeps,
  options: OpeningOptions,
  transcript: string[],
): Promise<Opening> {
  const { ip, port, timeouts } = options;
  note(transcript, `* connecting to ${options.host} [${ip}]:${port}`);
  note(transcript, ...policyLines(options));
  const wire = await openWire(deps, {
    ip,
    port,
    connectTimeoutMs: timeouts.connect,
    blockTimeoutMs: timeouts.block,
  });
  if (typeof wire === "string") return failed(transcript, trouble("connect", wire));
  try {
    return { kind: "open", session: await converse({ wire, options, transcript }) };
  } catch (error) {
    if (!(error instanceof Stop)) throw error;
    wire.cut("given up");
    return failed(transcript, error.result);
  }
}

function failed(transcript: string[], result: PeerResult): Opening {
  if (result.kind === "trouble") note(transcript, `* ${result.stage}: ${result.reason}`);
  return { kind: "failed", result };
}

function trouble(stage: Stage, reason: string): PeerResult {
  return { kind: "trouble", stage, reason };
}

async function converse(step: Step): Promise<OpenSession> {
  const { options, wire } = step;
  let tls = options.implicitTls ? await turnToTls(step) : null;
  await greet(step);
  let capabilities = await hello(step);
  if (tls === null && options.tls !== "never" && (await startTls(step, capabilities))) {
    tls = await turnToTls(step);
    // RFC 3207 §4.2: what was said in the clear is forgotten, for it may have been changed on the way.
    // Under TLS 1.3 a peer refuses the handshake, for want of a certificate of ours, say, when it is over for us.
    capabilities = await hello(step, "starttls");
  }
  if (options.auth !== undefined) await logIn(step, options.auth, capabilities, tls);
  // What came in one piece with the last reply may have ended the session. It must count as a failure: as a session that has
  // only ended early it would be opened anew at once, for ever.
  const broken = wire.broken();
  if (broken !== null) throw new Stop(trouble(options.auth === undefined ? "ehlo" : "auth", broken));
  return { wire, capabilities, tls, tlsLines: [...policyLines(options), ...tlsLines(options, tls)] };
}

/** Sends one command, null for none, and waits for its reply. `***` stands in the transcript for the secret at its end. */
async function command(
  step: Step,
  stage: Stage,
  line: string | null,
  timeoutMs: number,
  secret = "",
): Promise<Reply> {
  if (line !== null)
    note(step.transcript, `C: ${secret === "" ? line : `${line.slice(0, -secret.length)}***`}`);
  const octets = line === null ? [] : [Buffer.from(`${line}\r\n`)];
  const { replies, trouble: reason } = await step.wire.exchange(octets, [timeoutMs]);
  const [answer] = replies;
  if (answer === undefined) throw new Stop(trouble(stage, reason ?? "no reply"));
  const reply = withoutEcho(answer, secret);
  note(step.transcript, `S: ${replyText(reply)}`);
  return reply;
}

/** A run of BASE64, in which secrets are sent. */
const BASE64 = /[A-Za-z0-9+/]{4,}/g;

/**
 * The reply without what it repeats of a secret, in any case and cut short or not: some servers quote the command that they
 * do not take, and the record of an attempt is for every project to read.
 */
function withoutEcho(reply: Reply, secret: string): Reply {
  if (secret === "") return reply;
  const told = secret.toLowerCase();
  const lines = reply.lines.map((text) =>
    text.replace(BASE64, (run) => (told.includes(run.toLowerCase()) ? "***" : run)),
  );
  return { ...reply, lines };
}

function refused(stage: Stage, reply: Reply): Stop {
  const { code, enhanced } = reply;
  // A 3xx, which nothing here asks for: it is no refusal, and nobody knows what it is.
  if (code < 400) return new Stop(trouble(stage, `protocol error: ${replyText(reply)}`));
  return new Stop({ kind: "reply", stage, code, enhanced, text: explanation(reply) });
}

async function greet(step: Step): Promise<void> {
  const reply = await command(step, "connect", null, step.options.timeouts.greeting);
  if (!isSuccess(reply)) throw refused("connect", reply);
}

/** What a server answers to a command that it does not know, or not in this form (RFC 5321 §4.2.3). */
const UNKNOWN_COMMAND: ReadonlySet<number> = new Set([500, 501, 502, 504]);

/**
 * RFC 5321 §3.2: HELO where EHLO is not known.
 * @param lost the stage at which the session has failed where EHLO has no answer
 */
async function hello(step: Step, lost: Stage = "ehlo"): Promise<Capabilities> {
  const { ehloName, timeouts } = step.options;
  const reply = await command(step, lost, `EHLO ${ehloName}`, timeouts.ehlo);
  if (isSuccess(reply)) return readCapabilities(reply);
  if (reply.code < 500) throw refused("ehlo", reply);
  const helo = await command(step, "ehlo", `HELO ${ehloName}`, timeouts.ehlo).catch((stop: unknown) => {
    // Who hangs up behind a no that is more than ignorance of EHLO has said what there was to say.
    throw UNKNOWN_COMMAND.has(reply.code) ? stop : refused("ehlo", reply);
  });
  if (!isSuccess(helo)) throw refused("ehlo", helo);
  return NO_CAPABILITIES;
}

/** Modes in which a delivery ends rather than go on without TLS: someone in between may have struck STARTTLS out. */
const MANDATORY: ReadonlySet<TlsMode> = new Set<TlsMode>(["encrypted", "verified"]);

/** Whether the peer is ready for the handshake. */
async function startTls(step: Step, capabilities: Capabilities): Promise<boolean> {
  const { tls, timeouts } = step.options;
  const mandatory = MANDATORY.has(tls);
  if (capabilities.startTls) {
    const reply = await command(step, "starttls", "STARTTLS", timeouts.ehlo);
    if (isSuccess(reply)) return true;
    // A peer that hangs up is not there to go on with in the clear.
    if (mandatory || reply.code === CLOSING)
      throw new Stop(trouble("starttls", `STARTTLS refused: ${replyText(reply)}`));
  } else if (mandatory) throw new Stop(trouble("starttls", "STARTTLS is not offered"));
  return false;
}

async function turnToTls(step: Step): Promise<TlsState> {
  const { host, tls, security, timeouts } = step.options;
  const dane = security?.dane;
  // RFC 7672 §8.1: the server is told the name under which its TLSA records lie, for it may have a certificate for each.
  const state = await step.wire.upgrade({
    host: dane?.names[0] ?? host,
    alternativeNamesOnly: security?.tls === "verified",
    dane,
    timeoutMs: timeouts.tls,
  });
  if (typeof state === "string") throw new Stop(trouble("starttls", state));
  note(step.transcript, ...tlsLines(step.options, state));
  if (tls === "verified" && state.fault !== null)
    throw new Stop(trouble("starttls", `certificate of ${host}: ${state.fault}`));
  return state;
}

/** The policy that the connection goes by, for the record. */
function policyLines({ security }: OpeningOptions): string[] {
  return security === undefined ? [] : [`* TLS policy: ${security.policy}`];
}

/** What is recorded of TLS: version and cipher, the certificate and what it was worth. */
function tlsLines({ security }: OpeningOptions, tls: TlsState | null): string[] {
  if (tls === null) return [];
  const verified = security?.dane === undefined ? "verified" : "verified by DANE";
  const worth = tls.fault === null ? verified : `not verified: ${tls.fault}`;
  const certificate = tls.certificate === null ? "not readable" : describeCertificate(tls.certificate);
  return [`* TLS: ${tls.name}, ${worth}`, `* TLS certificate: ${certificate}`];
}

/** RFC 4954, with the mechanisms of RFC 4616 and, for older servers, LOGIN. */
async function logIn(
  step: Step,
  auth: Credentials,
  capabilities: Capabilities,
  tls: TlsState | null,
): Promise<void> {
  // Whoever listens in, or sits in between with a certificate of their own, would have the password.
  if (!auth.insecure && (tls === null || tls.fault !== null))
    throw new Stop(trouble("auth", "no login over a connection that is not encrypted and verified"));
  const reply = await runMechanism(step, auth, capabilities.auth);
  // Our password is wrong, which is no fault of the message: it waits until the operator has put that right.
  if (reply.code !== 235) throw new Stop(trouble("auth", `login refused: ${replyText(reply)}`));
}

async function runMechanism(step: Step, auth: Credentials, offered: ReadonlySet<string>): Promise<Reply> {
  const timeoutMs = step.options.timeouts.auth;
  const encoded = (text: string): string => Buffer.from(text, "utf8").toString("base64");
  if (offered.has("PLAIN")) {
    const token = encoded(`\0${auth.user}\0${auth.pass}`);
    return command(step, "auth", `AUTH PLAIN ${token}`, timeoutMs, token);
  }
  if (!offered.has("LOGIN")) throw new Stop(trouble("auth", "neither AUTH PLAIN nor AUTH LOGIN is offered"));
  let reply = await command(step, "auth", "AUTH LOGIN", timeoutMs);
  for (const answer of [auth.user, auth.pass]) {
    if (reply.code !== 334) return reply;
    const token = encoded(answer);
    reply = await command(step, "auth", token, timeoutMs, token);
  }
  return reply;
}
