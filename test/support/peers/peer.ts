import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../redis.ts";
import type { KeyAndCert } from "../tls.ts";

/** The next hop of mail for a domain. */
export interface PeerRoute {
  ip?: string;
  port: number;
}

export interface PeerOptions {
  /** Offers STARTTLS with this certificate. If null, it has no TLS. */
  tls: KeyAndCert | null;
  /** True if it uses STARTTLS when the next server offers it. */
  clientTls?: boolean;
  /** Other domains that it accepts mail for, and the next hop of each. */
  routes?: Readonly<Record<string, PeerRoute>>;
  /** If set, relays only for clients that log in with this. */
  login?: { user: string; pass: string };
}

/** A real mail server of another project, with a mailbox. */
export interface Peer {
  ip: string;
  port: number;
  /**
   * Returns the messages in its mailbox, with CRLF line ends, once there are that many. Fails after some seconds.
   */
  mailbox(count: number): Promise<Buffer[]>;
  /** Its log so far. */
  log(): string;
  stop(): Promise<void>;
}

export interface PeerKind {
  name: string;
  /** Why it cannot run here, or null if it can. */
  missing: string | null;
  /** Why it cannot be a TLS server here although it offers STARTTLS, or null if it can. */
  brokenTls: string | null;
  /** True if it supports client login without further packages. */
  logsIn: boolean;
  /** True if its DSNs carry the next server's reply in a Diagnostic-Code (RFC 3464 §2.3.6). */
  quotesReply: boolean;
  start(options: PeerOptions): Promise<Peer>;
}

/** The domain of every peer, its mailbox there, and an address that gets a 4xx reply. */
export const PEER_DOMAIN = "peer.test";
/** The name of its MX host. */
export const PEER_MX = `mx.${PEER_DOMAIN}`;
export const PEER_MAILBOX = `inbox@${PEER_DOMAIN}`;
export const PEER_BUSY = `busy@${PEER_DOMAIN}`;
/** Largest message of a peer, in bytes. */
export const PEER_MAX_OCTETS = 3_000_000;
/** A peer's reply for the busy address. */
export const PEER_BUSY_REPLY = "450 4.7.1 Greylisted, come back later";
/** Owner of mailboxes, a user id that no machine needs. */
export const MAILBOX_UID = 64_123;

export const PEERS = join(import.meta.dir, "../../../node_modules/.cache/peers");

const WAIT_MS = 25_000;
const POLL_MS = 10;
/** Ports tried before giving up: another process may take a free port between the look and the start. */
const PORT_TRIES = 5;

/** Real mail servers switch users and chroots. */
export function needsRoot(): string | null {
  return process.getuid?.() === 0 ? null : "only root can start it";
}

/** Polls until there is an answer. If it takes too long, throws the error that `otherwise` returns. */
export async function eventually<Answer>(
  ask: () => Answer | null | Promise<Answer | null>,
  otherwise: () => string,
): Promise<Answer> {
  for (const until = performance.now() + WAIT_MS; performance.now() < until; await Bun.sleep(POLL_MS)) {
    const answer = await ask();
    if (answer !== null) return answer;
  }
  throw new Error(otherwise());
}

/** Returns the messages of a maildir, oldest first by name, with the line ends of the wire. */
export function maildir(folder: string, log: () => string): (count: number) => Promise<Buffer[]> {
  const fresh = join(folder, "new");
  return (count) =>
    eventually(
      () => {
        const names = existsSync(fresh) ? readdirSync(fresh).sort() : [];
        if (names.length < count) return null;
        return names.map((name) => onTheWire(readFileSync(join(fresh, name))));
      },
      () => `no ${count} mails in ${fresh}: ${log()}`,
    );
}

/** Mail servers on Unix store messages with LF. */
function onTheWire(stored: Buffer): Buffer {
  return Buffer.from(stored.toString("latin1").replace(/\r?\n/g, "\r\n"), "latin1");
}

/** A server that was just started. */
export interface Launched {
  process: Bun.Subprocess;
  log(): string;
  stop(): Promise<void>;
}

/** Starts a server on a free port with `launch` and waits until it answers. */
export async function onFreePort<Started extends Launched>(
  ip: string,
  launch: (port: number) => Promise<Started>,
): Promise<Started & { port: number }> {
  let said = "";
  for (let attempt = 0; attempt < PORT_TRIES; attempt++) {
    const port = freePort();
    const started = await launch(port);
    if (await answers(ip, port, started.process)) return { ...started, port };
    said = started.log();
    await started.stop();
  }
  throw new Error(`the server does not start: ${said}`);
}

/** Resolves to whether the server accepts connections there before its process ends. */
export async function answers(ip: string, port: number, child: Bun.Subprocess): Promise<boolean> {
  const until = performance.now() + WAIT_MS;
  while (child.exitCode === null && performance.now() < until) {
    const socket = { data: () => undefined };
    const opened = await Bun.connect({ hostname: ip, port, socket }).catch(() => null);
    opened?.terminate();
    if (opened !== null) return true;
    await Bun.sleep(POLL_MS);
  }
  return false;
}
