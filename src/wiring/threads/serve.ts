import { systemClock } from "../../clock.ts";
import { BEAT_MS, BEATS, type FromThread, TURNED_TO, type ToThread } from "./protocol.ts";

/** How a thread works. */
export interface Work<Asked, Found> {
  /** Does a task; `turnTo` is to be called where work on it begins, and goes on after something else may have been worked on. */
  run(asked: Asked, turnTo: () => void): Promise<Found>;
  /** Octets of a task. */
  octets(asked: Asked): number;
  /** Of what was found, the memory that is handed over instead of copied. */
  handedOver(found: Found): ArrayBuffer[];
}

interface Thread<Asked, Found> {
  pulse: Int32Array;
  work: Work<Asked, Found>;
  inHand: number;
  /** Whether a next beat is due. */
  beating: boolean;
}

/**
 * Octets of a task from which on what it took is given back at once. The collector would let several such tasks come
 * first, each of which takes five times its size; one of usual size must not pay for that.
 */
const LARGE_OCTETS = 1024 * 1024;

declare const self: Worker;

/** Makes this thread one of a pool's. */
export function serveThread<Settings, Asked, Found>(begin: (settings: Settings) => Work<Asked, Found>): void {
  let thread: Thread<Asked, Found> | null = null;
  self.onmessage = ({ data }: MessageEvent<ToThread<Settings, Asked>>): void => {
    if (data.kind === "work") {
      if (thread !== null) void answer(thread, data);
      return;
    }
    thread = { pulse: new Int32Array(data.pulse), work: begin(data.settings), inHand: 0, beating: false };
    Atomics.add(thread.pulse, BEATS, 1);
  };
}

async function answer<Asked, Found>(
  thread: Thread<Asked, Found>,
  { id, asked }: { id: number; asked: Asked },
): Promise<void> {
  thread.inHand++;
  // Short tasks come and go between two beats: each with beats of its own, a busy thread would have thousands of timers.
  if (!thread.beating) beat(thread);
  const said = await answerTo(thread, id, asked);
  thread.inHand--;
  const octets = thread.work.octets(asked);
  postMessage(said, said.error === undefined ? thread.work.handedOver(said.found) : []);
  if (octets >= LARGE_OCTETS) Bun.gc(true);
}

async function answerTo<Asked, Found>(
  { pulse, work }: Thread<Asked, Found>,
  id: number,
  asked: Asked,
): Promise<FromThread<Found>> {
  const turnTo = (): void => void Atomics.store(pulse, TURNED_TO, id);
  try {
    return { id, found: await work.run(asked, turnTo) };
  } catch (error) {
    return { id, error: String(error) };
  }
}

/** Shows that the thread turns, for as long as it has work in hand. */
function beat<Asked, Found>(thread: Thread<Asked, Found>): void {
  Atomics.add(thread.pulse, BEATS, 1);
  thread.beating = thread.inHand > 0;
  if (thread.beating) systemClock.after(BEAT_MS, () => beat(thread));
}
