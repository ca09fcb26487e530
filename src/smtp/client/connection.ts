import type { OutboundMail, SendResult, Timeouts } from "./delivery.ts";
import { type OpeningOptions, type OpenSession, openSession } from "./opening.ts";
import { transact } from "./transaction.ts";
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
  /** Says QUIT and closes. */
  quit(): Promise<void>;
  /** Closes at once; what is under way ends in trouble. */
  cut(reason: string): void;
  whenCut(listener: () => void): void;
}

export type Connecting = { kind: "open"; connection: Connection } | { kind: "failed"; result: SendResult };

/**
 * Opens a session. Where TLS is opportunistic and its handshake fails, the host is tried once more in the clear
 * (RFC 7435 §3): a peer with broken TLS is no worse than one without.
 */
export async function openConnection(
  deps: WireDeps,
  options: OpeningOptions,
  transcript: string[],
): Promise<Connecting> {
  const opening = await openSession(deps, options, transcript);
  if (opening.kind === "open") return { kind: "open", connection: connectionOver(opening.session, options) };
  const { result } = opening;
  const mayFallBack = options.tls === "opportunistic" && !options.implicitTls && options.auth === undefined;
  if (mayFallBack && result.kind === "trouble" && result.stage === "starttls")
    return openConnection(deps, { ...options, tls: "never" }, transcript);
  return opening;
}

function connectionOver(session: OpenSession, options: OpeningOptions): Connection {
  const { wire, capabilities } = session;
  let reset = false;
  return {
    host: options.host,
    ip: options.ip,
    tls: session.tls,
    send(mail, transcript, released) {
      const release = (needsReset: boolean): void => {
        reset = needsReset;
        released();
      };
      const { timeouts } = options;
      return transact({ wire, capabilities, timeouts, reset, transcript, released: release }, mail);
    },
    usable: () => wire.broken() === null,
    quit: () => quit(session, options.timeouts),
    cut: (reason) => wire.cut(reason),
    whenCut: (listener) => wire.whenCut(listener),
  };
}

async function quit(session: OpenSession, timeouts: Timeouts): Promise<void> {
  await session.wire.exchange([Buffer.from("QUIT\r\n")], [timeouts.quit]);
  session.wire.cut("done");
}
