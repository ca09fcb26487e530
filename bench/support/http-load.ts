/**
 * Sends POSTs over kept connections as fast as they are answered, from a separate process. It uses raw sockets and
 * requests built beforehand, and reads only the first line and the length of an answer. Prints one JSON line.
 */
import { recipient, sendBody } from "./message.ts";

export interface LoadOptions {
  port: number;
  key: string;
  from: string;
  connections: number;
  /** Number of recipient domains. */
  domains: number;
  /** Unmeasured and measured time, milliseconds. If `count` is given, that many requests are sent instead. */
  warmMs: number;
  measureMs: number;
  count?: number;
  /** Number of earlier loads of BUILT_REQUESTS on the same data, so that no recipient comes twice. */
  earlier?: number;
}

export interface LoadResult {
  answered: number;
  perSecond: number;
  p50: number;
  p99: number;
}

/**
 * Requests built beforehand. If they are sent again, their recipient changes, because a repeated body is stored only
 * once.
 */
const BUILT_REQUESTS = 20_000;
/** Number of the first recipient. Its first digit changes when all requests have been sent. */
const FIRST_RECIPIENT = 100_000;
const ROUNDS = 9;
const ONE = 0x31;
const NUMBER_LENGTH = /content-length: (\d+)/i;

interface Lane {
  sentAt: number;
  rest: Uint8Array;
  head: string;
}

const options: LoadOptions = JSON.parse(process.argv[2] ?? "{}");
const requests = Array.from({ length: BUILT_REQUESTS }, (_, n) => {
  const to = recipient(FIRST_RECIPIENT + n, options.domains);
  const body = Buffer.from(sendBody(options.from, to));
  const head =
    `POST /v1/emails HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${options.key}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
  const octets = Buffer.concat([Buffer.from(head), body]);
  const digit = to.search(/\d/);
  const [first, second] = [octets.indexOf(to), octets.lastIndexOf(to)];
  return { octets, digits: [first + digit, second + digit] };
});
const times: number[] = [];
const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
const begin = performance.now();
let next = 0;
let open = 0;

function more(): boolean {
  return options.count === undefined
    ? performance.now() - begin < options.warmMs + options.measureMs
    : next < options.count;
}

/** Returns the next request, with a recipient that no other request had, for a number of rounds. */
function nextRequest(): Uint8Array {
  const round = ((options.earlier ?? 0) + Math.floor(next / BUILT_REQUESTS)) % ROUNDS;
  const request = requests[next++ % BUILT_REQUESTS];
  if (request === undefined) throw new Error("there are no requests");
  for (const at of request.digits) request.octets[at] = ONE + round;
  return request.octets;
}

function send(socket: Bun.Socket<Lane>): void {
  if (!more()) {
    socket.end();
    if (--open === 0) finish();
    return;
  }
  socket.data.sentAt = performance.now();
  const request = nextRequest();
  const written = socket.write(request);
  socket.data.rest = request.subarray(written);
}

function answered(socket: Bun.Socket<Lane>, chunk: Buffer): void {
  socket.data.head += chunk.toString("latin1");
  const { head, sentAt } = socket.data;
  const end = head.indexOf("\r\n\r\n");
  if (end < 0 || head.length < end + 4 + Number(NUMBER_LENGTH.exec(head)?.[1])) return;
  if (!head.startsWith("HTTP/1.1 202 ")) {
    console.error(head);
    process.exit(1);
  }
  const now = performance.now();
  if (now - begin >= options.warmMs) times.push(now - sentAt);
  socket.data.head = "";
  send(socket);
}

for (open = 0; open < options.connections; open++)
  await Bun.connect<Lane>({
    hostname: "127.0.0.1",
    port: options.port,
    data: { sentAt: 0, rest: new Uint8Array(), head: "" },
    socket: {
      data: answered,
      open: (socket) => queueMicrotask(() => send(socket)),
      drain(socket) {
        socket.data.rest = socket.data.rest.subarray(Math.max(0, socket.write(socket.data.rest)));
      },
      close(socket) {
        if (!more()) return;
        console.error(`closed by the server after ${socket.data.head}`);
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
