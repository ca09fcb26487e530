import { systemClock } from "../../src/clock.ts";
import { BEATS, TURNED_TO, type ToCpu } from "../../src/wiring/cpu/serve.ts";

/** Time between two beats, milliseconds. */
const BEAT_MS = 20;

declare const self: Worker;

/** Makes this thread a pool thread that sends heartbeats like a real one and runs `work` for each task. */
export function beatAndWork<Asked>(work: (id: number, asked: Asked) => void): void {
  let pulse: Int32Array | null = null;
  const beat = (beats: Int32Array): void => {
    Atomics.add(beats, BEATS, 1);
    systemClock.after(BEAT_MS, () => beat(beats));
  };
  self.onmessage = ({ data }: MessageEvent<ToCpu<unknown, Asked>>): void => {
    if (data.kind === "start") {
      pulse = new Int32Array(data.pulse);
      beat(pulse);
    } else if (pulse !== null) {
      Atomics.store(pulse, TURNED_TO, data.id);
      work(data.id, data.asked);
    }
  };
  // Says that its code is loaded. A pool ignores an answer to no task.
  self.postMessage({ id: 0 });
}
