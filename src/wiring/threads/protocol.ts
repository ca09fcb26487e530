/** Time between two beats of a thread while it has work in hand. */
export const BEAT_MS = 100;
/** Places in the memory that both threads see: beats so far, and the task that was turned to last. */
export const BEATS = 0;
export const TURNED_TO = 1;
/** Octets of that memory. */
export const PULSE_OCTETS = 8;

/** What a thread is told: first how to work, then each task. */
export type ToThread<Settings, Asked> =
  | { kind: "start"; pulse: SharedArrayBuffer; settings: Settings }
  | { kind: "work"; id: number; asked: Asked };

/** What it says of each. */
export type FromThread<Found> =
  | { id: number; found: Found; error?: undefined }
  | { id: number; found?: undefined; error: string };
