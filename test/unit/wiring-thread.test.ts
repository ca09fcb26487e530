import { expect, test } from "bun:test";
import { HOUR_MS } from "../../src/core/time-units.ts";
import { BEATS, type ToThread } from "../../src/wiring/threads/protocol.ts";
import { type Loss, MAX_TASK_MS, PoolThread } from "../../src/wiring/threads/thread.ts";
import { manualClock } from "../support/manual-clock.ts";

const STALL_MS = 2000;

/** A thread that has begun to work and says nothing, with a task in hand; what is lost of it, and its beats. */
function watched() {
  const clock = manualClock();
  const losses: Loss[] = [];
  let pulse: Int32Array = new Int32Array(2);
  const worker = {
    postMessage(message: ToThread<null, string>) {
      if (message.kind === "start") pulse = new Int32Array(message.pulse);
    },
    addEventListener: () => undefined,
    terminate: () => undefined,
  };
  const thread = new PoolThread<string, string>(
    clock,
    { open: () => worker as unknown as Worker, settings: null, stallMs: STALL_MS, sent: (asked) => asked },
    { finished: () => undefined, lost: (_thread, _tasks, loss) => void losses.push(loss) },
  );
  const beat = () => void Atomics.add(pulse, BEATS, 1);
  beat();
  thread.take({ id: 1, asked: "", octets: 0, since: 0, done: () => undefined, failed: () => undefined });
  return { clock, losses, beat };
}

test("a thread that falls silent is given up, no later where the clock is put back", () => {
  const { clock, losses } = watched();
  clock.advance(1000);
  clock.step(-24 * HOUR_MS);
  clock.advance(STALL_MS + 1000);
  expect(losses.map(({ kind }) => kind)).toEqual(["held"]);
});

test("a task whose end was lost is found, no later where the clock is put back", () => {
  const { clock, losses, beat } = watched();
  clock.step(-24 * HOUR_MS);
  for (let ms = 0; ms < MAX_TASK_MS + 1000; ms += 100) {
    beat();
    clock.advance(100);
  }
  expect(losses).toEqual([{ kind: "held", suspect: 1 }]);
});

test("what a process that stood still has in hand is no fault of its threads", () => {
  const { clock, losses, beat } = watched();
  clock.advance(1000);
  beat();
  // Timers run on where they stood, and the thread's next beat comes behind our look.
  clock.step(24 * HOUR_MS);
  clock.advance(1000);
  beat();
  clock.advance(1000);
  expect(losses).toEqual([]);
  // From then on it is watched as ever.
  clock.advance(STALL_MS + 1000);
  expect(losses.map(({ kind }) => kind)).toEqual(["held"]);
});
