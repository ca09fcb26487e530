import type { HostSecurity } from "../../core/tls-policy.ts";
import {
  type Destination,
  type OutboundMail,
  type PeerResult,
  type SendResult,
  type Timeouts,
  note,
} from "./delivery.ts";
import { type OpenOptions, type OpenSession, openSession } from "./open-session.ts";
import { isTaken, type Reset, transact } from "./transaction.ts";
import type { TransportDeps } from "./transport-queue.ts";
import type { TlsState } from "./transport.ts";

/** An SMTP session that sends one message after another. */
export interface Connection {
  readonly host: string;
  readonly ip: string;
  readonly tls: TlsState | null;
  /**
   * Sends a message. Resolves with its outcome and never rejects. Call again only from within `released` or after it. If the
   * peer has PIPELINING, `released` comes before the outcome.
   */
  send(mail: OutboundMail, transcript: string[], released: () => void): Promise<SendResult>;
  /** Returns true if it can send another message. */
  usable(): boolean;
  /** Returns true if the peer has a whole message and has not replied. If it closes now, the message may be doubled. */
  awaitsVerdict(): boolean;
  /** Sends QUIT and closes. */
  quit(): Promise<void>;
  /** Closes at once. Current messages end in trouble. */
  close(reason: string): void;
  onClosed(listener: () => void): void;
}

/** A destination, with the host and address to connect to. */
export interface ConnectionOptions
  extends Pick<Destination, "hosts" | "port" | "tls" | "implicitTls" | "auth" | "ehloName" | "localAddress"> {
  host: string;
  ip: string;
  timeouts: Timeouts;
}

/** Result of connecting to one host. */
export type ConnectResult = { kind: "open"; connection: Connection } | { kind: "failed"; result: PeerResult };

/**
 * Opens a session as the host's policy requires. If TLS is opportunistic and the handshake fails, tries once more in
 * plain text (RFC 7435 §3): broken TLS is no worse than none.
 */
export function openConnection(
  deps: TransportDeps,
  options: ConnectionOptions,
  transcript: string[],
): Promise<ConnectResult> {
  return openSecured(deps, { ...options, ...securityOf(options) }, transcript);
}

/**
 * Returns the TLS requirements of the host. If the destination does not name the host, they are the strictest, so that
 * a mix-up of hosts never ends in plain text.
 */
function securityOf({ hosts, host, tls }: ConnectionOptions): Pick<OpenOptions, "tls" | "security"> {
  const named = hosts.find(({ name }) => name === host);
  if (named === undefined) return { tls: "verified" };
  const security: HostSecurity | undefined = named.security;
  return security === undefined ? { tls } : { tls: security.tls, security };
}

async function openSecured(
  deps: TransportDeps,
  options: OpenOptions,
  transcript: string[],
): Promise<ConnectResult> {
  const opening = await openSession(deps, options, transcript);
  if (opening.kind === "open")
    return { kind: "open", connection: createConnection(opening.session, options) };
  const { result } = opening;
  const mayFallBack = options.tls === "opportunistic" && !options.implicitTls && options.auth === undefined;
  if (mayFallBack && result.kind === "trouble" && result.stage === "starttls")
    return openSecured(deps, { ...options, tls: "never" }, transcript);
  return opening;
}

function createConnection(session: OpenSession, options: OpenOptions): Connection {
  const { transport, capabilities } = session;
  let reset: Reset = "none";
  let sent = 0;
  let contents = 0;
  const onContent = (change: 1 | -1): void => {
    contents += change;
  };
  return {
    host: options.host,
    ip: options.ip,
    tls: session.tls,
    async send(mail, transcript, released) {
      const nth = ++sent;
      // The first message's transcript already has these lines from the opening.
      if (nth > 1) note(transcript, ...session.tlsLines);
      const release = (next: Reset): void => {
        reset = next;
        released();
      };
      const { timeouts } = options;
      const deps = { transport, capabilities, timeouts, reset, transcript, released: release, onContent };
      const result = await transact(deps, mail);
      // If the verdict came before the next message, no RSET is needed.
      if (nth === sent && isTaken(result)) reset = "none";
      return result;
    },
    usable: () => transport.closeReason() === null,
    awaitsVerdict: () => contents > 0 && transport.allWritten(),
    quit: () => quit(session, options.timeouts),
    close: (reason) => transport.close(reason),
    onClosed: (listener) => transport.onClosed(listener),
  };
}

async function quit(session: OpenSession, timeouts: Timeouts): Promise<void> {
  await session.transport.exchange([Buffer.from("QUIT\r\n")], [timeouts.quit]);
  session.transport.close("done");
}
