// A thread that whatever speaks of spinning holds for good: for what no template brings the real one to.
import { systemClock } from "../../src/clock.ts";
import type { AnyAsked, Rendered, RenderingKind } from "../../src/flows/renderings.ts";
import {
  BEATS,
  type FromThread,
  PULSE_OCTETS,
  TURNED_TO,
  type ToThread,
} from "../../src/wiring/threads/protocol.ts";

declare const self: Worker;

let pulse = new Int32Array(new SharedArrayBuffer(PULSE_OCTETS));

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
  Atomics.store(pulse, TURNED_TO, data.id);
  if (JSON.stringify(data.asked).includes("spin")) for (;;);
  const said: FromThread<Rendered<RenderingKind>> = { id: data.id, found: { made: ["done"] } };
  postMessage(said);
};
