import type {
  Destination,
  HostSecurity,
  OutboundMail,
  PeerResult,
  SendResult,
  Timeouts,
} from "./delivery.ts";
import { type OpeningOptions, type OpenSession, openSession } from "./opening.ts";
import { isTaken, type Reset, transact } from "./transaction.ts";
import { note } from "./transcript.ts";
import type { WireDeps } from "./line.ts";
import type { TlsState } from "./wire.ts";

/** An SMTP session kept for one message after the other. */
export interface Connection {
  readonly host: string;
  readonly ip: string;
  readonly tls: TlsState | null;
  /**
   * Sends a message; resolves with its outcome, never rejects. Not to be called again before `released`, which comes
   * synchronously and, where the peer has PIPELINING, before the outcome.
   */
  send(mail: OutboundMail, transcript: string[], released: () => void): Promise<SendResult>;
  /** Whether it can take a message still. */
  usable(): boolean;
  /** Whether the peer has a message whole and has not said yet whether it takes it: a cut now may double it. */
  awaitsVerdict(): boolean;
  /** Says QUIT and closes. */
  quit(): Promise<void>;
  /** Closes at once; what is under way ends in trouble. */
  cut(reason: string): void;
  whenCut(listener: () => void): void;
}

/** A destination, and which of its hosts and addresses to connect to. */
export interface ConnectionOptions
  extends Pick<Destination, "hosts" | "port" | "tls" | "implicitTls" | "auth" | "ehloName"> {
  host: string;
  ip: string;
  timeouts: Timeouts;
}

/** What came of opening a connection to one host. */
export type Connecting = { kind: "open"; connection: Connection } | { kind: "failed"; result: PeerResult };

/**
 * Opens a session as the host's policy wants it. Where TLS is opportunistic and its handshake fails, the host is tried
 * once more in the clear (RFC 7435 §3): a peer with broken TLS is no worse than one without.
 */
export function openConnection(
  deps: WireDeps,
  options: ConnectionOptions,
  transcript: string[],
): Promise<Connecting> {
  return connectSecured(deps, { ...options, ...securityOf(options) }, transcript);
}

/**
 * What the TLS of the host must be. A host that the destination does not name has no policy to go by: it is held to
 * the strictest one, so that no mix-up of hosts can end in the clear.
 */
function securityOf({ hosts, host, tls }: ConnectionOptions): Pick<OpeningOptions, "tls" | "security"> {
  const named = hosts.find(({ name }) => name === host);
  if (named === undefined) return { tls: "verified" };
  const security: HostSecurity | undefined = named.security;
  return security === undefined ? { tls } : { tls: security.tls, security };
}

async function connectSecured(
  deps: WireDeps,
  options: OpeningOptions,
  transcript: string[],
): Promise<Connecting> {
  const opening = await openSession(deps, options, transcript);
  if (opening.kind === "open") return { kind: "open", connection: connectionOver(opening.session, options) };
  const { result } = opening;
  const mayFallBack = options.tls === "opportunistic" && !options.implicitTls && options.auth === undefined;
  if (mayFallBack && result.kind === "trouble" && result.stage === "starttls")
    return connectSecured(deps, { ...options, tls: "never" }, transcript);
  return opening;
}

function connectionOver(session: OpenSession, options: OpeningOptions): Connection {
  const { wire, capabilities } = session;
  let reset: Reset = "none";
  let sent = 0;
  let contents = 0;
  const content = (change: 1 | -1): void => {
    contents += change;
  };
  return {
    host: options.host,
    ip: options.ip,
    tls: session.tls,
    async send(mail, transcript, released) {
      const nth = ++sent;
      // The first message has the lines of the opening, these among them.
      if (nth > 1) note(transcript, ...session.tlsLines);
      const release = (next: Reset): void => {
        reset = next;
        released();
      };
      const { timeouts } = options;
      const deps = { wire, capabilities, timeouts, reset, transcript, released: release, content };
      const result = await transact(deps, mail);
      // The verdict has come before the next message: it leaves nothing.
      if (nth === sent && isTaken(result)) reset = "none";
      return result;
    },
    usable: () => wire.broken() === null,
    awaitsVerdict: () => contents > 0 && wire.flushed(),
    quit: () => quit(session, options.timeouts),
    cut: (reason) => wire.cut(reason),
    whenCut: (listener) => wire.whenCut(listener),
  };
}

async function quit(session: OpenSession, timeouts: Timeouts): Promise<void> {
  await session.wire.exchange([Buffer.from("QUIT\r\n")], [timeouts.quit]);
  session.wire.cut("done");
}
