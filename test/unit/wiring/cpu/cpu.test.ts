import { expect, test } from "bun:test";
import { HOUR_MS } from "../../../../src/core/time/units.ts";
import { BEATS, type ToCpu } from "../../../../src/wiring/cpu/serve.ts";
import { type Loss, MAX_TASK_MS, Cpu } from "../../../../src/wiring/cpu/cpu.ts";
import { manualClock } from "../../../support/manual-clock.ts";

const STALL_MS = 2000;

/** A thread that works on a task and stays silent, with its lost tasks and its heartbeats. */
function watched() {
  const clock = manualClock();
  const losses: Loss[] = [];
  let pulse: Int32Array = new Int32Array(2);
  const worker = {
    postMessage(message: ToCpu<null, string>) {
      if (message.kind === "start") pulse = new Int32Array(message.pulse);
    },
    addEventListener: () => undefined,
    terminate: () => undefined,
  };
  const thread = new Cpu<string, string>(
    clock,
    { open: () => worker as unknown as Worker, settings: null, stallMs: STALL_MS, sent: (asked) => asked },
    { finished: () => undefined, lost: (_thread, _tasks, loss) => void losses.push(loss) },
  );
  const beat = () => void Atomics.add(pulse, BEATS, 1);
  beat();
  thread.take({ id: 1, asked: "", octets: 0, since: 0, done: () => undefined, failed: () => undefined });
  return { clock, losses, beat };
}

test("a silent thread is given up", () => {
  const { clock, losses } = watched();
  clock.advance(1000);
  clock.advance(STALL_MS + 1000);
  expect(losses.map(({ kind }) => kind)).toEqual(["held"]);
});

test("a task whose end was lost is found", () => {
  const { clock, losses, beat } = watched();
  for (let ms = 0; ms < MAX_TASK_MS + 1000; ms += 100) {
    beat();
    clock.advance(100);
  }
  expect(losses).toEqual([{ kind: "held", suspect: 1 }]);
});

test("if the whole process stood still, its threads are not blamed", () => {
  const { clock, losses, beat } = watched();
  clock.advance(1000);
  beat();
  // Timers continue from where they stood, and the thread's next heartbeat comes after our check.
  clock.stall(24 * HOUR_MS);
  clock.advance(1000);
  beat();
  clock.advance(1000);
  expect(losses).toEqual([]);
  // From then on it is watched as usual.
  clock.advance(STALL_MS + 1000);
  expect(losses.map(({ kind }) => kind)).toEqual(["held"]);
});
