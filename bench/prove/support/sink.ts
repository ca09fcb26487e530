/**
 * The target of a run's mail and webhooks: an SMTP server and an HTTP server that count, and that can be made to
 * fail.
 */
import { OUR_HOST } from "../../../test/support/our-host.ts";

/** Mail that a recipient of the sink has got. */
export interface Received {
  count: number;
  messageIds: Set<string>;
  /** Times at which each copy was answered `250`, milliseconds since the epoch, by this process's clock. */
  times: number[];
}

/**
 * Behaviour of the sink: takes mail, answers every command after EHLO with a given reply (`451 4.3.0 Later`), keeps
 * silent, or hangs up at once. When a silence ends, it cuts the connections that met it.
 */
export type SinkMode =
  | { kind: "take" }
  | { kind: "refuse"; reply: string }
  | { kind: "hang" }
  | { kind: "cut" };

/** An SMTP server that takes all mail. */
export interface MailSink {
  port: number;
  /** By recipient, as RCPT named it. */
  received: ReadonlyMap<string, Received>;
  /** Copies taken, over all recipients. */
  copies(): number;
  set(mode: SinkMode): void;
  stop(): void;
}

export interface MailSinkOptions {
  /** Time between a message's end and its `250`, milliseconds. With a longer time, more deliveries are in flight. */
  answerMs?: number;
  /** Called for each copy before it is answered. */
  arrived?: (recipient: string, at: number) => void;
}

interface Session {
  buffered: string;
  inData: boolean;
  rcptTo: string[];
  turn: Promise<void>;
  /** True if the client met a silence. */
  unheard: boolean;
}

const DATA_END = "\r\n.\r\n";
const MESSAGE_ID = /^message-id:\s*(\S+)/im;
const EHLO = "250-sink.test\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 SIZE 52428800";

/** Starts an SMTP server on loopback. */
export function startMailSink(options: MailSinkOptions = {}): MailSink {
  const received = new Map<string, Received>();
  let mode: SinkMode = { kind: "take" };
  let copies = 0;
  const sockets = new Set<Bun.Socket<Session>>();
  const take = (rcptTo: readonly string[], data: string): void => {
    const messageId = MESSAGE_ID.exec(data)?.[1] ?? "";
    const now = Date.now();
    for (const to of rcptTo) {
      options.arrived?.(to, now);
      const known = received.get(to) ?? { count: 0, messageIds: new Set<string>(), times: [] };
      received.set(to, known);
      known.count++;
      known.messageIds.add(messageId);
      known.times.push(now);
      copies++;
    }
  };
  /** The answer to a command; null for none. */
  const answer = (session: Session, line: string): string | null => {
    const verb = line.slice(0, 4).toUpperCase();
    if (mode.kind === "hang") {
      session.unheard = true;
      return null;
    }
    if (verb === "QUIT") return "221 bye";
    if (verb === "EHLO" || verb === "HELO") return EHLO;
    if (mode.kind === "refuse") return mode.reply;
    if (verb === "MAIL" || verb === "RSET") session.rcptTo = [];
    if (verb === "RCPT") session.rcptTo.push(/<([^>]*)>/.exec(line)?.[1] ?? "");
    if (verb === "DATA") session.inData = true;
    return verb === "DATA" ? "354 go on" : "250 ok";
  };
  const work = async (socket: Bun.Socket<Session>): Promise<void> => {
    const session = socket.data;
    for (;;) {
      const mark = session.inData ? DATA_END : "\r\n";
      const end = session.buffered.indexOf(mark);
      if (end < 0) return;
      const piece = session.buffered.slice(0, end);
      session.buffered = session.buffered.slice(end + mark.length);
      let said: string | null;
      if (session.inData) {
        session.inData = false;
        if (options.answerMs !== undefined) await Bun.sleep(options.answerMs);
        take(session.rcptTo, piece);
        said = "250 2.0.0 taken";
      } else said = answer(session, piece);
      if (said !== null) socket.write(`${said}\r\n`);
      if (said?.startsWith("221")) socket.end();
    }
  };
  const server = Bun.listen<Session>({
    hostname: OUR_HOST,
    port: 0,
    socket: {
      open(socket) {
        socket.data = { buffered: "", inData: false, rcptTo: [], turn: Promise.resolve(), unheard: false };
        sockets.add(socket);
        if (mode.kind === "cut") socket.terminate();
        else if (mode.kind === "hang") socket.data.unheard = true;
        else socket.write("220 sink.test ESMTP\r\n");
      },
      data(socket, chunk) {
        const session = socket.data;
        session.buffered += chunk.toString("latin1");
        session.turn = session.turn.then(() => work(socket));
      },
      close: (socket) => void sockets.delete(socket),
      error: () => undefined,
    },
  });
  return {
    port: server.port,
    received,
    copies: () => copies,
    set: (next) => {
      mode = next;
      // A peer that recovers has forgotten the commands it got while it hung; a client would wait minutes for their
      // replies.
      for (const socket of sockets) if (next.kind !== "hang" && socket.data.unheard) socket.terminate();
    },
    stop: () => server.stop(true),
  };
}

/** Behaviour of an endpoint: 200, a given status, or no answer. */
export type HookMode = { kind: "ok" } | { kind: "status"; status: number } | { kind: "hang" };

/** Webhook endpoints: one for each path. */
export interface HookSink {
  /** Returns the endpoint of a name. */
  url(name: string): string;
  /** How often each event was pushed and answered with 200, by `eventKey`. */
  events: ReadonlyMap<string, number>;
  /** Ids of the deliveries answered with 200, each with its count. */
  deliveries: ReadonlyMap<string, number>;
  /** Sets the behaviour of an endpoint; without a name, of all endpoints without their own behaviour. */
  set(mode: HookMode, name?: string): void;
  stop(): void;
}

/** Returns the key that identifies an event, both in a push and in the message's record. */
export function eventKey(endpoint: string, messageId: string, type: string, at: string): string {
  return `${endpoint} ${messageId} ${type} ${at}`;
}

interface Pushed {
  id: string;
  type: string;
  data: { messageId?: string; occurredAt?: string };
}

/** Time after which a hung request is answered, milliseconds: longer than any webhook timeout of a run. */
const HANG_MS = 60_000;

/** Starts the endpoints on loopback. */
export function startHookSink(): HookSink {
  const events = new Map<string, number>();
  const deliveries = new Map<string, number>();
  const modes = new Map<string, HookMode>();
  let usual: HookMode = { kind: "ok" };
  const server = Bun.serve({
    hostname: OUR_HOST,
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const name = new URL(request.url).pathname.slice(1);
      const mode = modes.get(name) ?? usual;
      // The part of the service's answer that the count needs.
      const body = (await request.json()) as Pushed;
      if (mode.kind === "hang") await Bun.sleep(HANG_MS);
      if (mode.kind !== "ok")
        return new Response(null, { status: mode.kind === "status" ? mode.status : 500 });
      const key = eventKey(name, body.data.messageId ?? "", body.type, body.data.occurredAt ?? "");
      events.set(key, (events.get(key) ?? 0) + 1);
      deliveries.set(body.id, (deliveries.get(body.id) ?? 0) + 1);
      return new Response(null, { status: 200 });
    },
  });
  return {
    url: (name) => `http://${OUR_HOST}:${server.port}/${name}`,
    events,
    deliveries,
    set(mode, name) {
      if (name === undefined) usual = mode;
      else modes.set(name, mode);
    },
    stop: () => void server.stop(true),
  };
}
