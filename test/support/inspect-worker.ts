// A thread that obeys its mails: for what no mail brings the real one to.
import { systemClock } from "../../src/clock.ts";
import { type AnyAsked, type Found, type ReadingKind, unread } from "../../src/flows/readings.ts";
import {
  BEATS,
  type FromThread,
  PULSE_OCTETS,
  TURNED_TO,
  type ToThread,
} from "../../src/wiring/threads/protocol.ts";

type Said = FromThread<Found<ReadingKind>>;

declare const self: Worker;

let pulse = new Int32Array(new SharedArrayBuffer(PULSE_OCTETS));
const held: Said[] = [];

function beat(): void {
  Atomics.add(pulse, BEATS, 1);
  systemClock.after(20, beat);
}

self.onmessage = ({ data }: MessageEvent<ToThread<unknown, AnyAsked>>): void => {
  if (data.kind === "start") {
    pulse = new Int32Array(data.pulse);
    beat();
    return;
  }
  const text = Buffer.from(data.asked.raw).toString();
  Atomics.store(pulse, TURNED_TO, data.id);
  if (text.startsWith("spin")) for (;;);
  if (text.startsWith("throw")) throw new Error("a mail's doing");
  if (text.startsWith("lost")) return;
  const said: Said = text.startsWith("fail")
    ? { id: data.id, error: "no way" }
    : { id: data.id, found: unread("worker.test", data.asked) };
  if (text.startsWith("hold")) held.push(said);
  else for (const answer of [...held.splice(0), said]) postMessage(answer);
};
