// Entry of the thread that inspects received mail.
import { systemClock } from "../clock.ts";
import { type InspectDeps, inspectMail } from "../flows/receive/inspect.ts";
import type { AuthEnvelope } from "../mail/authenticate.ts";
import { dnsServers } from "../net/dns-servers.ts";
import { nodeStyleResolver } from "../net/node-style-resolver.ts";
import { createResolver } from "../net/resolver.ts";
import { BEAT_MS, BEATS, type FromWorker, TURNED_TO, type ToWorker } from "./inspect-protocol.ts";

interface Thread {
  pulse: Int32Array;
  deps: InspectDeps;
  inHand: number;
}

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

async function answer(thread: Thread, { id, bytes, session }: Extract<ToWorker, { kind: "inspect" }>) {
  thread.inHand++;
  if (thread.inHand === 1) beat(thread);
  const said = await inspection(thread, id, new Uint8Array(bytes).slice(), session);
  thread.inHand--;
  postMessage(said);
}

async function inspection(
  { deps, pulse }: Thread,
  id: number,
  raw: Uint8Array,
  session: AuthEnvelope | null,
): Promise<FromWorker> {
  const turnTo = (): void => void Atomics.store(pulse, TURNED_TO, id);
  turnTo();
  // What an answer of a name server sets off is work on the mail that asked.
  const resolve: InspectDeps["resolve"] = (name, type) => deps.resolve(name, type).finally(turnTo);
  try {
    return { id, inspection: await inspectMail({ ...deps, resolve }, { raw, session }) };
  } catch (error) {
    return { id, error: String(error) };
  }
}

/** Shows that the thread turns, for as long as it has mail in hand. */
function beat(thread: Thread): void {
  Atomics.add(thread.pulse, BEATS, 1);
  if (thread.inHand > 0) systemClock.after(BEAT_MS, () => beat(thread));
}
