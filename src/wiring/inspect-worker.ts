// Entry of the thread that inspects received mail.
import { systemClock } from "../clock.ts";
import { type AnyAsked, type ReadingDeps, read } from "../flows/readings.ts";
import { dnsServers } from "../net/dns/servers.ts";
import { nodeStyleResolver } from "../net/dns/node-style-resolver.ts";
import { createResolver } from "../net/dns/resolver.ts";
import { BEAT_MS, BEATS, type FromWorker, TURNED_TO, type ToWorker } from "./inspect-protocol.ts";

interface Thread {
  pulse: Int32Array;
  deps: ReadingDeps;
  inHand: number;
}

/**
 * Octets of a mail from which on what reading it took is given back at once. The collector would let several such mails
 * come first, each of which takes five times its size; a mail of usual size must not pay for that.
 */
const LARGE_OCTETS = 1024 * 1024;

declare const self: Worker;

let thread: Thread | null = null;

self.onmessage = ({ data }: MessageEvent<ToWorker>): void => {
  if (data.kind === "start") thread = startThread(data);
  else if (thread !== null) void answer(thread, data);
};

function startThread({ pulse, host, dnsServers: texts }: Extract<ToWorker, { kind: "start" }>): Thread {
  const resolver = createResolver({ clock: systemClock }, { servers: dnsServers(texts) });
  const deps = { clock: systemClock, host, resolve: nodeStyleResolver(resolver) };
  const started = { pulse: new Int32Array(pulse), deps, inHand: 0 };
  Atomics.add(started.pulse, BEATS, 1);
  return started;
}

async function answer(thread: Thread, { id, asked }: Extract<ToWorker, { kind: "read" }>) {
  thread.inHand++;
  if (thread.inHand === 1) beat(thread);
  const said = await answerTo(thread, id, asked);
  thread.inHand--;
  const { length } = asked.raw;
  postMessage(said, largeBuffers(said));
  if (length >= LARGE_OCTETS) Bun.gc(true);
}

async function answerTo({ deps, pulse }: Thread, id: number, asked: AnyAsked): Promise<FromWorker> {
  const turnTo = (): void => void Atomics.store(pulse, TURNED_TO, id);
  turnTo();
  // What an answer of a name server sets off is work on the mail that asked.
  const resolve: ReadingDeps["resolve"] = (name, type) => deps.resolve(name, type).finally(turnTo);
  try {
    return { id, found: await read({ ...deps, resolve }, asked) };
  } catch (error) {
    return { id, error: String(error) };
  }
}

/** What is handed over instead of copied: the bytes of an attachment, and those of large bodies. */
function largeBuffers({ found }: FromWorker): ArrayBuffer[] {
  if (found === undefined) return [];
  const chunks = "contents" in found ? (found.contents.largeBody ?? []).map(({ bytes }) => bytes) : [];
  const pieces = "bytes" in found && found.bytes !== null ? [found.bytes] : chunks;
  return pieces.flatMap(({ buffer }) => (buffer instanceof ArrayBuffer ? [buffer] : []));
}

/** Shows that the thread turns, for as long as it has mail in hand. */
function beat(thread: Thread): void {
  Atomics.add(thread.pulse, BEATS, 1);
  if (thread.inHand > 0) systemClock.after(BEAT_MS, () => beat(thread));
}
