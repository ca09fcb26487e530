import type { Inspection } from "../flows/receive/inspect.ts";
import type { AuthEnvelope } from "../mail/authenticate.ts";

/** Time between two beats of an inspecting thread while it has mail in hand. */
export const BEAT_MS = 100;
/** Places in the memory that both threads see: beats so far, and the mail that was turned to last. */
export const BEATS = 0;
export const TURNED_TO = 1;
/** Octets of that memory. */
export const PULSE_OCTETS = 8;

/** What the thread is told: first how to work, then each mail. */
export type ToWorker =
  | { kind: "start"; pulse: SharedArrayBuffer; host: string; dnsServers: readonly string[] }
  | { kind: "inspect"; id: number; bytes: SharedArrayBuffer; session: AuthEnvelope | null };

/** What it says of each mail. */
export type FromWorker =
  | { id: number; inspection: Inspection; error?: undefined }
  | { id: number; inspection?: undefined; error: string };
