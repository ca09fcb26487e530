/** A webhook endpoint that behaves as none should, and notes when each delivery was tried. */

/** Its behaviour once it has the whole request. */
export type Badness = "ok" | "hang" | "drip" | "flood" | "reset" | "301" | "410" | "429";

/** Seconds in the `Retry-After` of an endpoint that answers 429. */
export const RETRY_AFTER_SECONDS = 3;
/** Bytes that a flooding endpoint announces: 10 GB. */
const FLOOD_OCTETS = 10_000_000_000;

export interface BadEndpoint {
  /** Returns its URL under any name. */
  url(name: string): string;
  /** When each delivery was tried, milliseconds since the epoch, by its id. */
  attempts: ReadonlyMap<string, readonly number[]>;
  /** Bytes of its answers that the service has read. */
  written(): number;
  stop(): void;
}

interface Exchange {
  heard: string;
  whole: boolean;
  timer: Timer | null;
}

const BLOCK = Buffer.alloc(256 * 1024, "x");
const DRIP_MS = 1000;
const DELIVERY_ID = /"id":"(dlv_[0-9a-z]+)"/;

const HEADS: Readonly<Partial<Record<Badness, string>>> = {
  ok: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
  flood: `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${FLOOD_OCTETS}\r\n\r\n`,
  "301": "HTTP/1.1 301 Moved Permanently\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n",
  "410": "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n",
  "429": `HTTP/1.1 429 Too Many Requests\r\nRetry-After: ${RETRY_AFTER_SECONDS}\r\nContent-Length: 0\r\n\r\n`,
};

/** Starts the endpoint on loopback. */
export function startBadEndpoint(badness: Badness): BadEndpoint {
  const attempts = new Map<string, number[]>();
  let written = 0;
  const pour = (socket: Bun.Socket<Exchange>): void => {
    for (let taken = BLOCK.length; taken === BLOCK.length; written += Math.max(0, taken))
      taken = socket.write(BLOCK);
  };
  const answer = (socket: Bun.Socket<Exchange>): void => {
    if (badness === "hang") return;
    if (badness === "reset") return void socket.terminate();
    if (badness === "drip") {
      const head = HEADS.ok ?? "";
      let at = 0;
      socket.data.timer = setInterval(() => socket.write(head.charAt(at++ % head.length)), DRIP_MS);
      return;
    }
    written += socket.write(HEADS[badness] ?? "");
    if (badness === "flood") pour(socket);
    else socket.end();
  };
  const server = Bun.listen<Exchange>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = { heard: "", whole: false, timer: null };
      },
      data(socket, chunk) {
        const exchange = socket.data;
        exchange.heard += chunk.toString("latin1");
        if (exchange.whole || !isWhole(exchange.heard)) return;
        exchange.whole = true;
        const id = DELIVERY_ID.exec(exchange.heard)?.[1] ?? "";
        attempts.set(id, [...(attempts.get(id) ?? []), Date.now()]);
        answer(socket);
      },
      drain: (socket) => void (badness === "flood" && socket.data.whole && pour(socket)),
      close: ({ data }) => void (data.timer !== null && clearInterval(data.timer)),
      error: () => undefined,
    },
  });
  return {
    url: (name) => `http://127.0.0.1:${server.port}/${name}`,
    attempts,
    written: () => written,
    stop: () => server.stop(true),
  };
}

function isWhole(request: string): boolean {
  const end = request.indexOf("\r\n\r\n");
  const length = Number(/^content-length: (\d+)/im.exec(request)?.[1] ?? 0);
  return end >= 0 && request.length >= end + 4 + length;
}
