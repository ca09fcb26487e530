import type { Clock } from "../../core/time/clock.ts";
import {
  type AnyAsked,
  type Asked,
  type Found,
  type Inspect,
  type ReadingKind,
  resultIfUnreadable,
} from "../../flows/mime/reading-tasks.ts";
import type { Log } from "../../log.ts";
import { unpackedInspection } from "./packed-inspection.ts";
import { CpuPool } from "./pool.ts";
import { openWorker, shared } from "./cpu.ts";
import { timed } from "../process/timing.ts";

/** Maximum number of messages that wait to be read, and their bytes. Further ones are refused for now. */
export const MAX_MAILS_WAITING = 2000;
export const MAX_OCTETS_WAITING = 128 * 1024 * 1024;
/** Time without a heartbeat after which a worker thread counts as stalled by its current message, milliseconds. */
export const STALL_MS = 2_000;

/** The settings of a worker thread that reads messages. */
export interface InspectorSettings {
  /** Our name in Authentication-Results. */
  host: string;
  /** The value of DNS_SERVERS. */
  dnsServers: readonly string[];
  /** The service domain. If left out, every answer of the servers counts. */
  ownZone?: string | undefined;
}

export interface InspectorOptions extends InspectorSettings {
  /** Maximum number of worker threads. */
  cpus: number;
  /** Starts a worker thread. If left out, the real one. */
  open?: () => Worker;
}

export interface Inspector {
  inspect: Inspect;
  /** Ends all worker threads and rejects their tasks. */
  close(): void;
}

/** Opens the worker threads that read received messages. */
export function openInspector(
  { clock, log }: { clock: Clock; log: Log },
  options: InspectorOptions,
): Inspector {
  const { host, dnsServers, ownZone, cpus, open = () => openWorker("inspect-worker.ts") } = options;
  const settings: InspectorSettings = { host, dnsServers, ownZone };
  const pool = new CpuPool<AnyAsked, Found<ReadingKind> | Asked<"header">>(clock, {
    open,
    settings,
    cpus,
    stallMs: STALL_MS,
    waiting: { tasks: MAX_MAILS_WAITING, octets: MAX_OCTETS_WAITING },
    sent: (asked) => ({ ...asked, raw: shared(asked.raw) }),
    unpacked: unpackedInspection,
    givenUp(asked) {
      log.warning("a message could not be read in time", { kind: asked.kind, bytes: asked.raw.length });
      return resultIfUnreadable(asked);
    },
  });
  const run = async (asked: AnyAsked): Promise<Found<ReadingKind> | null> => {
    const found = await pool.run(asked, asked.raw.length);
    return found !== null && "kind" in found ? run(found) : found;
  };
  return {
    // Messages between threads have no types, but the result is of the kind of its task.
    inspect: <Kind extends ReadingKind>(asked: Asked<Kind>) =>
      run(asked as AnyAsked) as Promise<Found<Kind> | null>,
    close: () => pool.close(),
  };
}

/** Outcome of a reading. `busy`: turned away for now. */
export type InspectOutcome = "read" | "busy" | "failed";

export type InspectMeter = (seconds: number, kind: ReadingKind, outcome: InspectOutcome) => void;

/** Inspects as `inspect` does, and reports how long each took, from request to answer. */
export function timedInspect(clock: Clock, inspect: Inspect, meter: InspectMeter): Inspect {
  return <Kind extends ReadingKind>(asked: Asked<Kind>): Promise<Found<Kind> | null> =>
    timed(
      clock,
      () => inspect(asked),
      (found): InspectOutcome => (found === null ? "busy" : "read"),
      (seconds, outcome) => meter(seconds, asked.kind, outcome),
    );
}
