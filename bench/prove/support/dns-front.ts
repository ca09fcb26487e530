/** A resolver in front of the run's own DNS server. It can be in trouble, and its answers live for one second. */
import { type Answer, decode, encode } from "dns-packet";
import { steadyPort } from "./service.ts";

/** Well; closed port; no answer; SERVFAIL; answers ten seconds late. */
export type FrontMode = "well" | "dead" | "silent" | "servfail" | "late";

export interface DnsFront {
  /** `ip:port`, as in DNS_SERVERS. */
  address: string;
  /** Questions so far. */
  asked(): number;
  set(mode: FrontMode): Promise<void>;
  stop(): void;
}

export const LATE_MS = 10_000;
const TTL_SECONDS = 1;
const RESPONSE_SERVFAIL = [0x80 | 0x01, 0x80 | 0x02] as const;
/** Time after which a forwarded question is given up. */
const PASS_LIMIT_MS = 5000;
const HOST = "127.0.0.1";

/** Starts the resolver in front of a server at `port` of loopback. */
export async function startDnsFront(port: number): Promise<DnsFront> {
  const own = steadyPort();
  let asked = 0;
  let mode: FrontMode = "well";
  const open = () =>
    Bun.udpSocket({
      hostname: HOST,
      port: own,
      binaryType: "buffer",
      socket: {
        async data(socket, query, from, address) {
          asked++;
          if (mode === "silent") return;
          const late = mode === "late";
          const answer = mode === "servfail" ? servfail(query) : await pass(port, query);
          if (late) await Bun.sleep(LATE_MS);
          if (answer !== null) reply(socket, answer, from, address);
        },
        error: () => undefined,
      },
    });
  let socket: Bun.udp.Socket<"buffer"> | null = await open();
  return {
    address: `${HOST}:${own}`,
    asked: () => asked,
    async set(next) {
      mode = next;
      if (next === "dead") {
        socket?.close();
        socket = null;
      } else socket ??= await open();
    },
    stop: () => socket?.close(),
  };
}

/** The client may be gone, or this resolver may have stopped. */
function reply(socket: Bun.udp.Socket<"buffer">, answer: Buffer, port: number, ip: string): void {
  try {
    if (!socket.closed) socket.send(answer, port, ip);
  } catch {
    // The kernel reports an earlier client's closed port.
  }
}

/** Returns the question with the flags of a SERVFAIL answer. */
function servfail(query: Buffer): Buffer {
  const answer = Buffer.from(query);
  answer[2] = RESPONSE_SERVFAIL[0];
  answer[3] = RESPONSE_SERVFAIL[1];
  return answer;
}

/** Returns the answer of the server; null if it does not answer. */
async function pass(port: number, query: Buffer): Promise<Buffer | null> {
  const { promise, resolve } = Promise.withResolvers<Buffer | null>();
  const socket = await Bun.udpSocket({
    connect: { hostname: HOST, port },
    binaryType: "buffer",
    socket: { data: (_socket, answer) => resolve(Buffer.from(answer)), error: () => resolve(null) },
  });
  const late = setTimeout(() => resolve(null), PASS_LIMIT_MS);
  socket.send(query);
  const answer = await promise;
  clearTimeout(late);
  socket.close();
  return answer === null ? null : shortLived(answer);
}

function shortLived(packet: Buffer): Buffer {
  const answer = decode(packet);
  const short = (records: readonly Answer[] = []): Answer[] =>
    records.map((record) =>
      record.type === "SOA"
        ? { ...record, ttl: TTL_SECONDS, data: { ...record.data, minimum: TTL_SECONDS } }
        : "ttl" in record
          ? { ...record, ttl: TTL_SECONDS }
          : record,
    );
  return encode({ ...answer, answers: short(answer.answers), authorities: short(answer.authorities) });
}
