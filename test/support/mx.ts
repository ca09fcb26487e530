import { type Arrivals, arrivals } from "./arrivals.ts";
import type { KeyAndCert } from "./tls.ts";

/**
 * The answer to a command: reply lines without the last CRLF. "close" hangs up, also as the last line. "silent"
 * sends nothing.
 */
/** A reply, or what gives one for the rest of the line and the client's address. */
export type MxAnswer = string | ((argument: string, remote: string) => string | Promise<string>);
export type MxVerb =
  | "EHLO"
  | "HELO"
  | "STARTTLS"
  | "AUTH"
  | "MAIL"
  | "RCPT"
  | "DATA"
  | "."
  | "RSET"
  | "NOOP"
  | "QUIT";

export interface MxOptions {
  ip?: string;
  port?: number;
  banner?: string;
  /** Keywords offered. STARTTLS is added if there is a certificate. */
  extensions?: string[];
  /** `secureOptions` are OpenSSL's, such as SSL_OP_NO_TLSv1_2. */
  tls?: KeyAndCert & { secureOptions?: number };
  /** TLS from the first byte. */
  implicitTls?: boolean;
  /** Answers by verb. A list is used up item by item, then its last item repeats. */
  answers?: Partial<Record<MxVerb, MxAnswer | MxAnswer[]>>;
}

export interface MxMessage {
  mailFrom: string;
  rcptTo: string[];
  /** The message without dot-stuffing. */
  data: Buffer;
  /** The bytes on the wire, without the ending dot. */
  wire: Buffer;
  tls: boolean;
  connection: number;
}

export interface TestMx {
  ip: string;
  port: number;
  /** Recipients answered with 2xx. */
  messages: Arrivals<MxMessage>;
  /** All command lines. A message counts as one line ".". */
  commands: Arrivals<string>;
  connections: Arrivals<number>;
  /** The client's address of each connection. */
  remotes: Arrivals<string>;
  closed: Arrivals<number>;
  /** The first bytes of each chunk as it arrived, in the clear or out of TLS. */
  chunks: string[];
  /** Changes answers while the server runs. */
  set(answers: MxOptions["answers"]): void;
  /**
   * Connects and waits for the greeting, so that everything any client sent before has arrived. The visit counts in
   * `connections`.
   */
  visit(): Promise<void>;
  /** Takes no new connections. Open ones continue. */
  stopListening(): void;
  /** Closes all connections at once. */
  cut(): void;
  stop(): void;
}

interface Session {
  id: number;
  buffered: Buffer;
  inData: boolean;
  tls: boolean;
  upgraded: boolean;
  mailFrom: string;
  rcptTo: string[];
  /** Remaining steps of an AUTH LOGIN. */
  authLines: number;
  /** Keeps answers in order, even if one of them is delayed. */
  turn: Promise<void>;
}

interface Peer {
  options: MxOptions;
  answers: Map<string, MxAnswer[]>;
  messages: Arrivals<MxMessage>;
  commands: Arrivals<string>;
  connections: Arrivals<number>;
  remotes: Arrivals<string>;
  closed: Arrivals<number>;
  chunks: string[];
  sockets: Set<Bun.Socket<Session>>;
}

const MAX_CHUNK_KEPT = 4096;
const END = Buffer.from("\r\n.\r\n");
/** First octet of a record that begins a handshake (RFC 8446 §5.1). */
const TLS_HANDSHAKE = 0x16;

/** An SMTP peer on loopback whose answers a test decides. It shares no code with the server under test. */
export function startMx(options: MxOptions = {}): TestMx {
  const peer: Peer = {
    options,
    answers: new Map(),
    messages: arrivals(),
    commands: arrivals(),
    connections: arrivals(),
    remotes: arrivals(),
    closed: arrivals(),
    chunks: [],
    sockets: new Set(),
  };
  setAnswers(peer, options.answers);
  const ip = options.ip ?? "127.0.0.1";
  const server = Bun.listen<Session>({
    hostname: ip,
    port: options.port ?? 0,
    ...(options.implicitTls && options.tls ? { tls: options.tls } : {}),
    socket: {
      open: (socket) => opened(peer, socket),
      data: (socket, chunk) => void (socket.data.upgraded || arrived(peer, socket, chunk)),
      close: (socket) => {
        peer.sockets.delete(socket);
        peer.closed.add(socket.data.id);
      },
      error: () => undefined,
    },
  });
  return {
    ip,
    port: server.port,
    messages: peer.messages,
    commands: peer.commands,
    connections: peer.connections,
    remotes: peer.remotes,
    closed: peer.closed,
    chunks: peer.chunks,
    set: (answers) => setAnswers(peer, answers),
    visit: () => visit(ip, server.port),
    stopListening: () => server.stop(),
    cut: () => {
      for (const socket of peer.sockets) socket.terminate();
    },
    stop: () => server.stop(true),
  };
}

async function visit(hostname: string, port: number): Promise<void> {
  const { promise: greeted, resolve } = Promise.withResolvers<void>();
  const socket = await Bun.connect({ hostname, port, socket: { data: () => resolve() } });
  await greeted;
  socket.terminate();
}

function setAnswers(peer: Peer, answers: MxOptions["answers"]): void {
  for (const [verb, answer] of Object.entries(answers ?? {}))
    peer.answers.set(verb, Array.isArray(answer) ? [...answer] : [answer]);
}

function opened(peer: Peer, socket: Bun.Socket<Session>): void {
  const id = peer.connections.items.length + 1;
  socket.data = {
    id,
    buffered: Buffer.alloc(0),
    inData: false,
    tls: peer.options.implicitTls === true,
    upgraded: false,
    mailFrom: "",
    rcptTo: [],
    authLines: 0,
    turn: Promise.resolve(),
  };
  peer.sockets.add(socket);
  peer.connections.add(id);
  peer.remotes.add(socket.remoteAddress);
  say(socket, peer.options.banner ?? "220 mx.test ESMTP");
}

function say(socket: Bun.Socket<Session>, answer: string): void {
  if (answer === "close") socket.end();
  else if (answer.endsWith("\r\nclose")) socket.end(answer.slice(0, -"close".length));
  else if (answer !== "silent") socket.write(`${answer}\r\n`);
}

function arrived(peer: Peer, socket: Bun.Socket<Session>, chunk: Buffer): void {
  const session = socket.data;
  peer.chunks.push(chunk.toString("latin1", 0, MAX_CHUNK_KEPT));
  session.buffered = Buffer.concat([session.buffered, chunk]);
  session.turn = session.turn.then(() => work(peer, socket));
}

async function work(peer: Peer, socket: Bun.Socket<Session>): Promise<void> {
  const session = socket.data;
  for (;;) {
    if (session.inData) {
      if (!(await takeMessage(peer, socket))) return;
      continue;
    }
    // A TLS handshake that was not offered gets no answer. Its bytes may contain a line end by chance.
    if (session.buffered[0] === TLS_HANDSHAKE) return;
    const end = session.buffered.indexOf("\r\n");
    if (end < 0) return;
    const line = session.buffered.toString("utf8", 0, end);
    session.buffered = session.buffered.subarray(end + 2);
    await takeCommand(peer, socket, line);
  }
}

/** Returns the next answer to a verb. If it is a function, calls it with the rest of the line. */
async function answerTo(
  { peer, remote }: { peer: Peer; remote: string },
  verb: string,
  argument: string,
  fallback: string,
): Promise<string> {
  const answers = peer.answers.get(verb) ?? [];
  const answer = (answers.length > 1 ? answers.shift() : answers[0]) ?? fallback;
  return typeof answer === "string" ? answer : answer(argument, remote);
}

async function takeCommand(peer: Peer, socket: Bun.Socket<Session>, line: string): Promise<void> {
  const session = socket.data;
  if (session.authLines > 0) {
    session.authLines--;
    peer.commands.add(line);
    return say(
      socket,
      session.authLines > 0
        ? "334 UGFzc3dvcmQ6"
        : await answerTo({ peer, remote: socket.remoteAddress }, "AUTH", line, "235 in"),
    );
  }
  const verb = (line.split(" ")[0] ?? "").toUpperCase();
  if (line.toUpperCase() === "AUTH LOGIN") session.authLines = 2;
  const answer =
    session.authLines > 0
      ? "334 VXNlcm5hbWU6"
      : await answerTo({ peer, remote: socket.remoteAddress }, verb, line, usual(peer, session, verb));
  note(session, verb, line, answer);
  peer.commands.add(line);
  say(socket, answer);
  if (verb === "STARTTLS" && answer.startsWith("220")) upgrade(peer, socket);
  if (verb === "QUIT") socket.end();
}

function usual(peer: Peer, session: Session, verb: string): string {
  if (verb === "EHLO") return ehlo(peer, session);
  if (verb === "STARTTLS") return "220 go ahead";
  if (verb === "DATA") return "354 go on";
  if (verb === "AUTH") return "235 in";
  return verb === "QUIT" ? "221 bye" : "250 ok";
}

function ehlo(peer: Peer, session: Session): string {
  const { extensions = ["PIPELINING", "8BITMIME", "SIZE 10485760", "SMTPUTF8"], tls } = peer.options;
  const words = ["mx.test", ...extensions, ...(tls && !session.tls ? ["STARTTLS"] : [])];
  return words.map((word, at) => `250${at === words.length - 1 ? " " : "-"}${word}`).join("\r\n");
}

function note(session: Session, verb: string, line: string, answer: string): void {
  const path = /<([^>]*)>/.exec(line)?.[1] ?? "";
  if (verb === "MAIL" && answer.startsWith("250")) session.mailFrom = path;
  if (verb === "RCPT" && answer.startsWith("250")) session.rcptTo.push(path);
  if (verb === "DATA") session.inData = answer.startsWith("354");
  if (verb === "RSET") session.rcptTo = [];
}

/** Takes a message from the buffer. Returns false if its end has not arrived. */
async function takeMessage(peer: Peer, socket: Bun.Socket<Session>): Promise<boolean> {
  const session = socket.data;
  const empty = session.buffered.subarray(0, 3).equals(END.subarray(2));
  const end = empty ? -2 : session.buffered.indexOf(END);
  if (end < 0 && !empty) return false;
  const wire = session.buffered.subarray(0, end + 2);
  session.buffered = session.buffered.subarray(end + END.length);
  session.inData = false;
  const data = Buffer.from(wire.toString("latin1").replace(/(^|\r\n)\./g, "$1"), "latin1");
  const { mailFrom, rcptTo, tls, id } = session;
  session.rcptTo = [];
  const answer = await answerTo(
    { peer, remote: socket.remoteAddress },
    ".",
    data.toString("latin1"),
    rcptTo.length > 0 ? "250 2.0.0 taken" : "554 5.5.1 no valid recipients",
  );
  peer.commands.add(".");
  if (answer.startsWith("2")) peer.messages.add({ mailFrom, rcptTo, data, wire, tls, connection: id });
  say(socket, answer);
  return true;
}

function upgrade(peer: Peer, socket: Bun.Socket<Session>): void {
  const { tls } = peer.options;
  if (tls === undefined) return;
  const session = socket.data;
  session.upgraded = true;
  const secured: Session = {
    ...session,
    tls: true,
    upgraded: false,
    buffered: Buffer.alloc(0),
    turn: Promise.resolve(),
  };
  socket.upgradeTLS<Session>({
    tls,
    data: secured,
    socket: { data: (secure, chunk) => arrived(peer, secure, chunk), error: () => undefined },
  });
}
