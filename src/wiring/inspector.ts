import type { Clock } from "../core/clock.ts";
import {
  type AnyAsked,
  type Asked,
  type Found,
  type Inspect,
  type ReadingKind,
  unread,
} from "../flows/readings.ts";
import type { Log } from "../log.ts";
import { ThreadPool } from "./threads/pool.ts";
import { openWorker, shared } from "./threads/thread.ts";

/** Mails that wait to be read, and their octets; what comes beyond is turned away for now. */
export const MAX_MAILS_WAITING = 2000;
export const MAX_OCTETS_WAITING = 128 * 1024 * 1024;
/** Silence after which a thread is taken to be held by the mail that it was turned to last. */
export const STALL_MS = 2_000;

/** What a thread that reads mail is told first. */
export interface InspectorSettings {
  /** Our name in Authentication-Results. */
  host: string;
  /** As in DNS_SERVERS. */
  dnsServers: readonly string[];
}

export interface InspectorOptions extends InspectorSettings {
  /** Threads at most. */
  threads: number;
  /** Starts a thread; left out: the real one. */
  open?: () => Worker;
}

export interface Inspector {
  inspect: Inspect;
  /** Ends all threads; what they have in hand is rejected. */
  close(): void;
}

/** Reads received mail in threads of their own. */
export function openInspector(
  { clock, log }: { clock: Clock; log: Log },
  options: InspectorOptions,
): Inspector {
  const { host, dnsServers, threads, open = () => openWorker("inspect-worker.ts") } = options;
  const settings: InspectorSettings = { host, dnsServers };
  const pool = new ThreadPool<AnyAsked, Found<ReadingKind>>(clock, {
    open,
    settings,
    threads,
    stallMs: STALL_MS,
    waiting: { tasks: MAX_MAILS_WAITING, octets: MAX_OCTETS_WAITING },
    sent: (asked) => ({ ...asked, raw: shared(asked.raw) }),
    // The mail is kept all the same: a sender must not lose it, nor bring it again for ever.
    givenUp(asked) {
      log.warning("a mail could not be read in time", { kind: asked.kind, bytes: asked.raw.length });
      return unread(host, asked);
    },
  });
  return {
    // What a thread finds is of the kind that it was asked for: messages between threads carry no types.
    inspect: <Kind extends ReadingKind>(asked: Asked<Kind>) =>
      pool.run(asked as AnyAsked, asked.raw.length) as Promise<Found<Kind> | null>,
    close: () => pool.close(),
  };
}
