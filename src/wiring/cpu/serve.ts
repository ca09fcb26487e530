import { systemClock } from "../../clock.ts";

export interface Work<Asked, Found> {
  /** Runs a task. It must call `turnTo` when it starts, and when it continues after other tasks may have run. */
  run(asked: Asked, turnTo: () => void): Promise<Found>;
  octets(asked: Asked): number;
  /** Returns the buffers of the result that are transferred instead of copied. */
  handedOver(found: Found): ArrayBuffer[];
  /** Returns the result in a form that is passed faster; null if it has none. */
  packed?(found: Found): Packed | null;
}

interface Served<Asked, Found> {
  pulse: Int32Array;
  work: Work<Asked, Found>;
  inHand: number;
  /** True if the next heartbeat is scheduled. */
  beating: boolean;
}

/**
 * Size of a task after which the garbage collector runs at once. By itself it would wait for several such tasks, each of
 * which takes five times its size. Smaller tasks do not pay for a run.
 */
const LARGE_OCTETS = 1024 * 1024;

declare const self: Worker;

/** Makes this worker thread one of a pool. */
export function serveCpu<Settings, Asked, Found>(begin: (settings: Settings) => Work<Asked, Found>): void {
  let cpu: Served<Asked, Found> | null = null;
  self.onmessage = ({ data }: MessageEvent<ToCpu<Settings, Asked>>): void => {
    if (data.kind === "work") {
      if (cpu !== null) void answer(cpu, data);
      return;
    }
    cpu = { pulse: new Int32Array(data.pulse), work: begin(data.settings), inHand: 0, beating: false };
    Atomics.add(cpu.pulse, BEATS, 1);
  };
}

async function answer<Asked, Found>(
  cpu: Served<Asked, Found>,
  { id, asked }: { id: number; asked: Asked },
): Promise<void> {
  cpu.inHand++;
  // All tasks share a heartbeat, because with one for each a busy worker thread would have thousands of timers.
  if (!cpu.beating) beat(cpu);
  const said = await answerTo(cpu, id, asked);
  cpu.inHand--;
  const octets = cpu.work.octets(asked);
  const packed = said.error === undefined ? cpu.work.packed?.(said.found) : null;
  if (packed) postMessage({ ...packed, id, isPacked: true } satisfies PackedFromCpu);
  else postMessage(said, said.error === undefined ? cpu.work.handedOver(said.found) : []);
  if (octets >= LARGE_OCTETS) Bun.gc(true);
}

async function answerTo<Asked, Found>(
  { pulse, work }: Served<Asked, Found>,
  id: number,
  asked: Asked,
): Promise<FromCpu<Found>> {
  const turnTo = (): void => void Atomics.store(pulse, TURNED_TO, id);
  try {
    return { id, found: await work.run(asked, turnTo) };
  } catch (error) {
    return { id, error: String(error) };
  }
}

/** Sends heartbeats while the worker thread has tasks. */
function beat<Asked, Found>(cpu: Served<Asked, Found>): void {
  Atomics.add(cpu.pulse, BEATS, 1);
  cpu.beating = cpu.inHand > 0;
  if (cpu.beating) systemClock.after(BEAT_MS, () => beat(cpu));
}

/** Interval of the heartbeats of a worker thread that has tasks, milliseconds. */
export const BEAT_MS = 100;
/** Indexes in the shared memory: the count of heartbeats, and the current task. */
export const BEATS = 0;
export const TURNED_TO = 1;
/** Bytes of the shared memory. */
export const PULSE_OCTETS = 8;

/** Messages to a worker thread: first its settings, then each task. */
export type ToCpu<Settings, Asked> =
  | { kind: "start"; pulse: SharedArrayBuffer; settings: Settings }
  | { kind: "work"; id: number; asked: Asked };

/** The answer of a worker thread to a task. */
export type FromCpu<Found> =
  | { id: number; found: Found; error?: undefined }
  | { id: number; found?: undefined; error: string };

/** A result made only of strings. Bun passes such an object between threads in half the time. */
export type Packed = Readonly<Record<`${string}Text`, string>>;

/** The answer of a worker thread if its result is packed. */
export type PackedFromCpu = Packed & { id: number; isPacked: true };
