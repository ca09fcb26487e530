/**
 * Slow clients in a separate process: thousands of connections that send a byte a second, that do not read their
 * answers, or that do nothing. If one is closed, it is opened again. Prints a line of JSON a second: open
 * connections by kind, and the number of reopened ones.
 */
import type { SlowOptions, SlowState } from "./slow-options.ts";

const TICKS_A_SECOND = 50;
/** Connections opened at a time: as many as a listener's queue holds. */
const AT_A_TIME = 100;
const BODY_OCTETS = 20_000;

interface Kind {
  name: string;
  port: number;
  /** Sent when the connection is open. */
  opening: string;
  /** Sent byte by byte, again and again; "" for nothing. */
  drip: string;
  /** True if it reads answers. */
  reads: boolean;
}

interface Slow {
  kind: Kind;
  at: number;
}

// Only the bench itself starts this program.
const options = JSON.parse(process.argv[2] ?? "{}") as SlowOptions;
const { httpPort, smtpPort, key, inbox } = options;
const head = `Host: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\n`;
const mail = `EHLO slow.example\r\nMAIL FROM:<slow@slow.example>\r\nRCPT TO:<${inbox}>\r\nDATA\r\n`;
const http = (name: string, opening: string, drip: string, reads: boolean): Kind => ({
  name: `HTTP: ${name}`,
  port: httpPort,
  opening,
  drip,
  reads,
});
const smtp = (name: string, opening: string, drip: string, reads: boolean): Kind => ({
  name: `SMTP: ${name}`,
  port: smtpPort,
  opening,
  drip,
  reads,
});
const HTTP_KINDS = [
  http("head an octet a second", "POST /v1/emails HTTP/1.1\r\n", `${head}X-Slow: ${"x".repeat(1000)}`, true),
  http(
    "body an octet a second",
    `POST /v1/emails HTTP/1.1\r\n${head}Content-Type: application/json\r\nContent-Length: ${BODY_OCTETS}\r\n\r\n`,
    "x",
    true,
  ),
  http("answer not read", `GET /docs/json HTTP/1.1\r\n${head}\r\n`, "", false),
];
const SMTP_KINDS = [
  smtp("command an octet a second", "", "EHLO x", true),
  smtp("mail an octet a second", mail, "x", true),
  smtp("replies not read", "EHLO slow.example\r\n", "NOOP\r\n", false),
];
const IDLE = smtp("idle", "EHLO slow.example\r\n", "", true);

const standing = new Map<string, number>();
const open = new Set<Bun.Socket<Slow>>();
let reopened = 0;

function opened(socket: Bun.Socket<Slow>): void {
  const { kind } = socket.data;
  open.add(socket);
  standing.set(kind.name, (standing.get(kind.name) ?? 0) + 1);
  if (!kind.reads) socket.pause();
  if (kind.opening !== "") socket.write(kind.opening);
}

function closed(socket: Bun.Socket<Slow>): void {
  const { kind } = socket.data;
  if (!open.delete(socket)) return;
  standing.set(kind.name, (standing.get(kind.name) ?? 0) - 1);
  reopened++;
  void connect(kind);
}

async function connect(kind: Kind): Promise<void> {
  await Bun.connect<Slow>({
    hostname: "127.0.0.1",
    port: kind.port,
    data: { kind, at: 0 },
    socket: { open: opened, data: () => undefined, close: closed, error: () => undefined },
  }).catch(async () => {
    await Bun.sleep(1000);
    await connect(kind);
  });
}

function report(): void {
  const state: SlowState = { standing: Object.fromEntries(standing), reopened };
  console.log(JSON.stringify(state));
}
report();
setInterval(report, 1000);

const wanted = [
  ...Array.from({ length: options.http }, (_, n) => HTTP_KINDS[n % HTTP_KINDS.length]),
  ...Array.from({ length: options.smtp }, (_, n) => SMTP_KINDS[n % SMTP_KINDS.length]),
  ...Array.from({ length: options.idle }, () => IDLE),
].filter((kind) => kind !== undefined);
for (let from = 0; from < wanted.length; from += AT_A_TIME)
  await Promise.all(wanted.slice(from, from + AT_A_TIME).map(connect));

// Serves a share of the connections each tick, so that the bytes are spread over the second.
let tick = 0;
setInterval(() => {
  const turn = tick++ % TICKS_A_SECOND;
  let nth = 0;
  for (const socket of open) {
    const { kind, at } = socket.data;
    if (nth++ % TICKS_A_SECOND !== turn || kind.drip === "") continue;
    socket.write(kind.drip.charAt(at % kind.drip.length));
    socket.data.at++;
  }
}, 1000 / TICKS_A_SECOND);
