/** A mail host that behaves as a large provider does, and counts what senders make of it. */
import type { Clock } from "../../../src/core/time/clock.ts";

/** A message that a client is handing over. Times are milliseconds of the run's clock. */
export interface Transaction {
  now: number;
  recipient: string;
  /** Sessions that are open, this one included. */
  sessions: number;
}

/** Stages at which a peer may refuse. */
export type PeerStage = "banner" | "mail" | "rcpt" | "final";

/** Behaviour of a peer. A reply refuses; null takes. */
export interface Behaviour {
  refuse(stage: PeerStage, transaction: Transaction): string | null;
  /** Milliseconds before each reply. */
  delayMs?: number;
}

/** Counts of a peer. */
export interface PeerCounts {
  sessions: number;
  transactions: number;
  refused: number;
  refusedAfterData: number;
  /** When each recipient's message was taken. */
  taken: Map<string, number>;
}

export interface Peer {
  counts: PeerCounts;
  stop(): void;
}

interface Session {
  buffered: string;
  inData: boolean;
  recipient: string;
  turn: Promise<void>;
}

const EHLO = "250-peer.test\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 SIZE 52428800";

/** Starts the peer on some loopback addresses, which count together. */
export function startPeer(clock: Clock, ips: readonly string[], port: number, behaviour: Behaviour): Peer {
  const counts: PeerCounts = {
    sessions: 0,
    transactions: 0,
    refused: 0,
    refusedAfterData: 0,
    taken: new Map(),
  };
  let open = 0;
  const wait = (ms: number) => new Promise<void>((resolve) => void clock.after(ms, resolve));
  const refusal = (stage: PeerStage, session: Session): string | null => {
    const { recipient } = session;
    const reply = behaviour.refuse(stage, { now: clock.now(), recipient, sessions: open });
    if (reply === null) return null;
    counts.refused++;
    if (stage === "final") counts.refusedAfterData++;
    return reply;
  };
  const replyTo = (session: Session, line: string): string => {
    const verb = line.slice(0, 4).toUpperCase();
    if (verb === "EHLO") return EHLO;
    if (verb === "MAIL") {
      counts.transactions++;
      session.recipient = "";
      return refusal("mail", session) ?? "250 ok";
    }
    if (verb === "RCPT") {
      const refused = refusal("rcpt", { ...session, recipient: /<([^>]*)>/.exec(line)?.[1] ?? "" });
      if (refused === null) session.recipient = /<([^>]*)>/.exec(line)?.[1] ?? "";
      return refused ?? "250 ok";
    }
    if (verb === "DATA") {
      session.inData = session.recipient !== "";
      return session.inData ? "354 go" : "503 no recipient";
    }
    return verb === "QUIT" ? "221 bye" : "250 ok";
  };
  const finish = (session: Session): string => {
    const refused = refusal("final", session);
    if (refused === null && !counts.taken.has(session.recipient))
      counts.taken.set(session.recipient, clock.now());
    return refused ?? "250 taken";
  };
  const say = (socket: Bun.Socket<Session>, text: string): void => {
    const { turn } = socket.data;
    socket.data.turn = turn.then(async () => {
      if (behaviour.delayMs !== undefined) await wait(behaviour.delayMs);
      socket.write(`${text}\r\n`);
      if (text.startsWith("221") || text.startsWith("421")) socket.end();
    });
  };
  const listeners = ips.map((hostname) =>
    Bun.listen<Session>({
      hostname,
      port,
      socket: {
        open(socket) {
          socket.data = { buffered: "", inData: false, recipient: "", turn: Promise.resolve() };
          counts.sessions++;
          open++;
          say(socket, refusal("banner", socket.data) ?? "220 peer.test");
        },
        close: () => void open--,
        data(socket, chunk) {
          const session = socket.data;
          session.buffered += chunk.toString("latin1");
          for (;;) {
            const mark = session.inData ? "\r\n.\r\n" : "\r\n";
            const end = session.buffered.indexOf(mark);
            if (end < 0) return;
            const line = session.buffered.slice(0, end);
            session.buffered = session.buffered.slice(end + mark.length);
            if (session.inData) {
              session.inData = false;
              say(socket, finish(session));
            } else say(socket, replyTo(session, line));
          }
        },
      },
    }),
  );
  return { counts, stop: () => listeners.map((one) => one.stop(true)) };
}
