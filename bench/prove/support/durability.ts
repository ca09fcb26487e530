/**
 * Reads a trace for the order of three things: a message in the write-ahead log, the log on disk, the reply that
 * promises it.
 */

/** State of the messages after the calls so far. */
interface Progress {
  /** Messages in the log's bytes that no fsync has covered yet. */
  written: Set<string>;
  durable: Set<string>;
  /** Messages that each thread's unfinished fsync covers. */
  syncing: Map<string, string[]>;
}

/** Results of a trace. */
export interface Durability {
  /** Reads one line of strace. */
  line(line: string): void;
  /** Messages promised by a reply after an fsync had covered them. */
  kept: ReadonlySet<string>;
  /** Messages promised before that. */
  early: ReadonlySet<string>;
  /** fsyncs and fdatasyncs of the log. */
  syncs(): number;
}

const MESSAGE = /msg_[0-9a-z]{26}/g;
const CALL = /^(\d+) +(\w+)\(\d+<([^>]*)>/;
const RESUMED = /^(\d+) +<\.\.\. (?:fsync|fdatasync) resumed>.*= 0$/;
const SYNCS = new Set(["fsync", "fdatasync"]);
const LOG_END = ".db-wal";
/** The replies that promise: 202 with the message's id, and 250 after the end of DATA. */
const PROMISE = /"(?:HTTP\/1\.1 202 |250 2\.0\.0 OK msg_)/;

/** Returns a reader of traces. */
export function readDurability(): Durability {
  const at: Progress = { written: new Set(), durable: new Set(), syncing: new Map() };
  const kept = new Set<string>();
  const early = new Set<string>();
  let syncs = 0;
  const cover = (ids: readonly string[]): void => {
    syncs++;
    for (const id of ids) {
      at.durable.add(id);
      at.written.delete(id);
    }
  };
  return {
    kept,
    early,
    syncs: () => syncs,
    line(line) {
      const resumed = RESUMED.exec(line)?.[1];
      if (resumed !== undefined) {
        const covered = at.syncing.get(resumed);
        at.syncing.delete(resumed);
        if (covered !== undefined) cover(covered);
        return;
      }
      const [, thread = "", call = "", file = ""] = CALL.exec(line) ?? [];
      if (file.endsWith(LOG_END)) {
        if (!SYNCS.has(call)) for (const id of line.match(MESSAGE) ?? []) at.written.add(id);
        // The fsync does not cover bytes that are written while it runs.
        else if (line.endsWith("<unfinished ...>")) at.syncing.set(thread, [...at.written]);
        else if (line.endsWith("= 0")) cover([...at.written]);
      } else if (PROMISE.test(line)) {
        for (const id of line.match(MESSAGE) ?? []) (at.durable.has(id) ? kept : early).add(id);
      }
    },
  };
}
