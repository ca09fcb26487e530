import type { HostSecurity } from "../../core/tls-policy.ts";
import { type Capabilities, NO_CAPABILITIES, readCapabilities } from "./capabilities.ts";
import {
  type Credentials,
  type Destination,
  type PeerResult,
  type Stage,
  type Timeouts,
  type TlsMode,
  note,
} from "./delivery.ts";
import { describeCertificate } from "./peer-certificate.ts";
import { CLOSING, explanation, isSuccess, type Reply, replyText } from "./reply-parser.ts";
import type { TransportDeps } from "./transport-queue.ts";
import { openTransport, type TlsState, type Transport } from "./transport.ts";

/** Options for opening one connection. */
export interface OpenOptions
  extends Pick<Destination, "port" | "tls" | "implicitTls" | "auth" | "ehloName" | "localAddress"> {
  /** Name of the host, which its certificate must have. */
  host: string;
  ip: string;
  /** The policy that `tls` comes from. If undefined, `tls` is the destination's own. */
  security?: HostSecurity;
  timeouts: Timeouts;
}

/** A session that is ready for MAIL. */
export interface OpenSession {
  transport: Transport;
  capabilities: Capabilities;
  tls: TlsState | null;
  /** Lines about TLS, for the transcripts of later messages in this session. */
  tlsLines: readonly string[];
}

/** Result of opening a session. */
export type OpenResult = { kind: "open"; session: OpenSession } | { kind: "failed"; result: PeerResult };

/** Ends the opening from any step with its result. Caught in this file. */
class OpenFailure extends Error {
  readonly result: PeerResult;
  constructor(result: PeerResult) {
    super(result.kind);
    this.result = result;
  }
}

interface Step {
  transport: Transport;
  options: OpenOptions;
  transcript: string[];
}

/**
 * Connects, reads the banner, sends EHLO, starts TLS and logs in, as the options require.
 * @param transcript gets a line for each command and reply
 */
export async function openSession(
  deps: TransportDeps,
  options: OpenOptions,
  transcript: string[],
): Promise<OpenResult> {
  const { ip, port, timeouts, localAddress } = options;
  const from = localAddress === undefined ? "" : ` from ${localAddress}`;
  note(transcript, `* connecting to ${options.host} [${ip}]:${port}${from}`);
  note(transcript, ...policyLines(options));
  const transport = await openTransport(deps, {
    ip,
    port,
    localAddress,
    connectTimeoutMs: timeouts.connect,
    blockTimeoutMs: timeouts.block,
  });
  if (typeof transport === "string") return failed(transcript, trouble("connect", transport));
  try {
    return { kind: "open", session: await negotiate({ transport, options, transcript }) };
  } catch (error) {
    if (!(error instanceof OpenFailure)) throw error;
    transport.close("given up");
    return failed(transcript, error.result);
  }
}

function failed(transcript: string[], result: PeerResult): OpenResult {
  if (result.kind === "trouble") note(transcript, `* ${result.stage}: ${result.reason}`);
  return { kind: "failed", result };
}

function trouble(stage: Stage, reason: string): PeerResult {
  return { kind: "trouble", stage, reason };
}

async function negotiate(step: Step): Promise<OpenSession> {
  const { options, transport } = step;
  let tls = options.implicitTls ? await upgradeToTls(step) : null;
  await awaitGreeting(step);
  let capabilities = await sayEhlo(step);
  if (tls === null && options.tls !== "never" && (await startTls(step, capabilities))) {
    tls = await upgradeToTls(step);
    // RFC 3207 §4.2: forget the plain-text exchange, since an attacker may have changed it. Under TLS 1.3 a peer can
    // refuse the handshake (for lack of a client certificate, for example) after it is complete for us.
    capabilities = await sayEhlo(step, "starttls");
  }
  if (options.auth !== undefined) await logIn(step, options.auth, capabilities, tls);
  // The last reply may have come together with the end of the session. Report that as a failure: otherwise the pool
  // would open the session again at once, for ever.
  const broken = transport.closeReason();
  if (broken !== null) throw new OpenFailure(trouble(options.auth === undefined ? "ehlo" : "auth", broken));
  return { transport, capabilities, tls, tlsLines: [...policyLines(options), ...tlsLines(options, tls)] };
}

/** Sends a command, if any, and waits for the reply. The transcript shows the secret at its end as `***`. */
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
  const { replies, trouble: reason } = await step.transport.exchange(octets, [timeoutMs]);
  const [answer] = replies;
  if (answer === undefined) throw new OpenFailure(trouble(stage, reason ?? "no reply"));
  const reply = withoutEcho(answer, secret);
  note(step.transcript, `S: ${replyText(reply)}`);
  return reply;
}

/** A run of BASE64, the encoding of secrets. */
const BASE64 = /[A-Za-z0-9+/]{4,}/g;

/**
 * Removes the secret from a reply, in any case and also if cut short. Some servers quote the command they refuse, and
 * projects read the transcripts.
 */
function withoutEcho(reply: Reply, secret: string): Reply {
  if (secret === "") return reply;
  const lowered = secret.toLowerCase();
  const lines = reply.lines.map((text) =>
    text.replace(BASE64, (run) => (lowered.includes(run.toLowerCase()) ? "***" : run)),
  );
  return { ...reply, lines };
}

function refused(stage: Stage, reply: Reply): OpenFailure {
  const { code, enhanced } = reply;
  // We send no command that expects 3xx here, so it is neither a refusal nor a success.
  if (code < 400) return new OpenFailure(trouble(stage, `protocol error: ${replyText(reply)}`));
  return new OpenFailure({ kind: "reply", stage, code, enhanced, text: explanation(reply) });
}

async function awaitGreeting(step: Step): Promise<void> {
  const reply = await command(step, "connect", null, step.options.timeouts.greeting);
  if (!isSuccess(reply)) throw refused("connect", reply);
}

/** Replies of a server that does not know a command or its form (RFC 5321 §4.2.3). */
const UNKNOWN_COMMAND: ReadonlySet<number> = new Set([500, 501, 502, 504]);

/**
 * RFC 5321 §3.2: sends HELO if EHLO is unknown.
 * @param lost stage of the failure if EHLO gets no reply
 */
async function sayEhlo(step: Step, lost: Stage = "ehlo"): Promise<Capabilities> {
  const { ehloName, timeouts } = step.options;
  const reply = await command(step, lost, `EHLO ${ehloName}`, timeouts.ehlo);
  if (isSuccess(reply)) return readCapabilities(reply);
  if (reply.code < 500) throw refused("ehlo", reply);
  const helo = await command(step, "ehlo", `HELO ${ehloName}`, timeouts.ehlo).catch((stop: unknown) => {
    // If the peer refused EHLO for another reason and then hung up, report its refusal.
    throw UNKNOWN_COMMAND.has(reply.code) ? stop : refused("ehlo", reply);
  });
  if (!isSuccess(helo)) throw refused("ehlo", helo);
  return NO_CAPABILITIES;
}

/** Modes that end the delivery if there is no TLS: an attacker may have removed STARTTLS from the reply. */
const MANDATORY: ReadonlySet<TlsMode> = new Set<TlsMode>(["encrypted", "verified"]);

/** Returns true if the peer is ready for the handshake. */
async function startTls(step: Step, capabilities: Capabilities): Promise<boolean> {
  const { tls, timeouts } = step.options;
  const mandatory = MANDATORY.has(tls);
  if (capabilities.startTls) {
    const reply = await command(step, "starttls", "STARTTLS", timeouts.ehlo);
    if (isSuccess(reply)) return true;
    // If the peer hangs up, there is no session to continue in plain text.
    if (mandatory || reply.code === CLOSING)
      throw new OpenFailure(trouble("starttls", `STARTTLS refused: ${replyText(reply)}`));
  } else if (mandatory) throw new OpenFailure(trouble("starttls", "STARTTLS is not offered"));
  return false;
}

async function upgradeToTls(step: Step): Promise<TlsState> {
  const { host, tls, security, timeouts } = step.options;
  const dane = security?.dane;
  // RFC 7672 §8.1: send the base name of the TLSA records as server name, because the server may have several
  // certificates.
  const state = await step.transport.upgrade({
    host: dane?.names[0] ?? host,
    alternativeNamesOnly: security?.tls === "verified",
    dane,
    timeoutMs: timeouts.tls,
  });
  if (typeof state === "string") throw new OpenFailure(trouble("starttls", state));
  note(step.transcript, ...tlsLines(step.options, state));
  if (tls === "verified" && state.fault !== null)
    throw new OpenFailure(trouble("starttls", `certificate of ${host}: ${state.fault}`));
  return state;
}

/** Returns the line that names the TLS policy. */
function policyLines({ security }: OpenOptions): string[] {
  return security === undefined ? [] : [`* TLS policy: ${security.policy}`];
}

/** Returns the lines about TLS: version, cipher, certificate, and whether it was verified. */
function tlsLines({ security }: OpenOptions, tls: TlsState | null): string[] {
  if (tls === null) return [];
  const verified = security?.dane === undefined ? "verified" : "verified by DANE";
  const worth = tls.fault === null ? verified : `not verified: ${tls.fault}`;
  const certificate = tls.certificate === null ? "not readable" : describeCertificate(tls.certificate);
  return [`* TLS: ${tls.name}, ${worth}`, `* TLS certificate: ${certificate}`];
}

/** RFC 4954 with the PLAIN mechanism (RFC 4616) or, for older servers, LOGIN. */
async function logIn(
  step: Step,
  auth: Credentials,
  capabilities: Capabilities,
  tls: TlsState | null,
): Promise<void> {
  // Otherwise an eavesdropper, or an attacker with another certificate, would get the password.
  if (!auth.insecure && (tls === null || tls.fault !== null))
    throw new OpenFailure(trouble("auth", "no login over a connection that is not encrypted and verified"));
  const reply = await runMechanism(step, auth, capabilities.auth);
  // If our password is wrong, the message is not at fault: it waits until the operator fixes the setting.
  if (reply.code !== 235) throw new OpenFailure(trouble("auth", `login refused: ${replyText(reply)}`));
}

async function runMechanism(step: Step, auth: Credentials, offered: ReadonlySet<string>): Promise<Reply> {
  const timeoutMs = step.options.timeouts.auth;
  const encoded = (text: string): string => Buffer.from(text, "utf8").toString("base64");
  if (offered.has("PLAIN")) {
    const token = encoded(`\0${auth.user}\0${auth.pass}`);
    return command(step, "auth", `AUTH PLAIN ${token}`, timeoutMs, token);
  }
  if (!offered.has("LOGIN"))
    throw new OpenFailure(trouble("auth", "neither AUTH PLAIN nor AUTH LOGIN is offered"));
  let reply = await command(step, "auth", "AUTH LOGIN", timeoutMs);
  for (const answer of [auth.user, auth.pass]) {
    if (reply.code !== 334) return reply;
    const token = encoded(answer);
    reply = await command(step, "auth", token, timeoutMs, token);
  }
  return reply;
}
