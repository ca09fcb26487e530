/**
 * Submits messages over kept sessions as fast as they are answered, from a separate process. Each session logs in
 * once. It sends MAIL, RCPT and DATA together, or, with `chunked`, all of a message with BDAT (RFC 3030). Prints
 * one JSON line.
 */
import { HTML, recipient, textTo } from "./message.ts";
import type { LoadResult } from "./http-load.ts";

export interface SmtpLoadOptions {
  port: number;
  user: string;
  password: string;
  from: string;
  connections: number;
  /** Number of recipient domains. */
  domains: number;
  /** Unmeasured and measured time, milliseconds. */
  warmMs: number;
  measureMs: number;
  chunked: boolean;
}

/** Messages built beforehand. If they are sent again, their recipient changes, so that no two are equal. */
const BUILT = 20_000;
/** Number of the first recipient. Its first digit changes when all messages have been sent. */
const FIRST_RECIPIENT = 100_000;
const ROUNDS = 9;
const ONE = 0x31;

interface Built {
  /** With `chunked`, the message is part of the envelope. */
  envelope: Buffer;
  message: Buffer;
  /** Positions of the first digit. */
  digits: [where: Buffer, at: number][];
}

interface Lane {
  sentAt: number;
  text: string;
  /** Replies that are still to come, by what they answer. */
  waits: ("ready" | "envelope" | "message")[];
  unsent: Buffer;
  built: Built | null;
}

const options: SmtpLoadOptions = JSON.parse(process.argv[2] ?? "{}");

function build(n: number): Built {
  const to = recipient(FIRST_RECIPIENT + n, options.domains);
  const header = [
    `From: Bench <${options.from}>`,
    `To: ${to}`,
    "Subject: Measured",
    "Date: Sat, 21 Nov 2026 09:00:00 +0000",
    `Message-ID: <${to}>`,
    "MIME-Version: 1.0",
    'Content-Type: multipart/alternative; boundary="=_part"',
  ];
  const part = (type: string, text: string) =>
    `--=_part\r\nContent-Type: text/${type}; charset=utf-8\r\n\r\n${text.replace(/\r?\n/g, "\r\n")}\r\n`;
  const body = `${part("plain", textTo(to))}${part("html", HTML.replaceAll("</p>", "</p>\n"))}--=_part--\r\n`;
  const content = `${header.join("\r\n")}\r\n\r\n${body}`;
  const end = options.chunked ? `BDAT ${Buffer.byteLength(content)} LAST\r\n${content}` : "DATA\r\n";
  const envelope = Buffer.from(`MAIL FROM:<${options.from}>\r\nRCPT TO:<${to}>\r\n${end}`);
  const message = Buffer.from(options.chunked ? "" : `${content}.\r\n`);
  const digits: Built["digits"] = [];
  const digit = to.search(/\d/);
  for (const where of [envelope, message])
    for (let at = where.indexOf(to); at >= 0; at = where.indexOf(to, at + 1))
      digits.push([where, at + digit]);
  return { envelope, message, digits };
}

const all = Array.from({ length: BUILT }, (_, n) => build(n));
const login = `AUTH PLAIN ${Buffer.from(`\0${options.user}\0${options.password}`).toString("base64")}\r\n`;
const times: number[] = [];
const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
const begin = performance.now();
let next = 0;
let open = options.connections;

function write(socket: Bun.Socket<Lane>, octets: Buffer): void {
  const { unsent } = socket.data;
  const whole = unsent.length === 0 ? octets : Buffer.concat([unsent, octets]);
  socket.data.unsent = whole.subarray(Math.max(0, socket.write(whole)));
}

function nextMessage(socket: Bun.Socket<Lane>): void {
  if (performance.now() - begin >= options.warmMs + options.measureMs) {
    socket.end();
    if (--open === 0) finish();
    return;
  }
  const round = Math.floor(next / BUILT) % ROUNDS;
  const built = all[next++ % BUILT];
  if (built === undefined) throw new Error("there are no messages");
  for (const [where, at] of built.digits) where[at] = ONE + round;
  socket.data.built = built;
  socket.data.sentAt = performance.now();
  socket.data.waits.push("ready", "ready", options.chunked ? "message" : "envelope");
  write(socket, built.envelope);
}

function replied(socket: Bun.Socket<Lane>, code: string): void {
  const { waits, built, sentAt } = socket.data;
  const what = waits.shift();
  if (!/^[23]/.test(code) || what === undefined) {
    console.error(`${code} to ${what}`);
    process.exit(1);
  }
  if (what === "envelope" && built !== null) {
    waits.push("message");
    write(socket, built.message);
  } else if (what === "message") {
    const now = performance.now();
    if (now - begin >= options.warmMs) times.push(now - sentAt);
    nextMessage(socket);
  } else if (waits.length === 0) nextMessage(socket);
}

function received(socket: Bun.Socket<Lane>, chunk: Buffer): void {
  const lane = socket.data;
  lane.text += chunk.toString("latin1");
  for (let end = lane.text.indexOf("\r\n"); end >= 0; end = lane.text.indexOf("\r\n")) {
    const line = lane.text.slice(0, end);
    lane.text = lane.text.slice(end + 2);
    if (line[3] !== "-") replied(socket, line);
  }
}

for (let lane = 0; lane < options.connections; lane++)
  await Bun.connect<Lane>({
    hostname: "127.0.0.1",
    port: options.port,
    data: { sentAt: 0, text: "", waits: ["ready", "ready", "ready"], unsent: Buffer.alloc(0), built: null },
    socket: {
      data: received,
      // The greeting, EHLO and AUTH. The server may not have greeted, but takes what comes early.
      open: (socket) => queueMicrotask(() => write(socket, Buffer.from(`EHLO bench.example\r\n${login}`))),
      drain: (socket) => write(socket, Buffer.alloc(0)),
      close(socket) {
        if (performance.now() - begin >= options.warmMs + options.measureMs) return;
        console.error(`closed by the server: ${socket.data.text}`);
        process.exit(1);
      },
    },
  });
await finished;
const seconds = (performance.now() - begin - options.warmMs) / 1000;
times.sort((a, b) => a - b);
const result: LoadResult = {
  answered: next,
  perSecond: times.length / seconds,
  p50: times[Math.floor(times.length * 0.5)] ?? 0,
  p99: times[Math.floor(times.length * 0.99)] ?? 0,
};
console.log(JSON.stringify(result));
