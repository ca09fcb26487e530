import type { AnyAsked, Found, ReadingKind } from "../flows/readings.ts";

/** Time between two beats of an inspecting thread while it has mail in hand. */
export const BEAT_MS = 100;
/** Places in the memory that both threads see: beats so far, and the mail that was turned to last. */
export const BEATS = 0;
export const TURNED_TO = 1;
/** Octets of that memory. */
export const PULSE_OCTETS = 8;

/** What the thread is told: first how to work, then each mail, whose bytes are in shared memory. */
export type ToWorker =
  | { kind: "start"; pulse: SharedArrayBuffer; host: string; dnsServers: readonly string[] }
  | { kind: "read"; id: number; asked: AnyAsked };

/** What it says of each mail: what it has found, in the kind that was asked for. */
export type FromWorker =
  | { id: number; found: Found<ReadingKind>; error?: undefined }
  | { id: number; found?: undefined; error: string };
