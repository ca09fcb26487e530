import { Admission, type AdmissionLimits } from "../../core/concurrency/admission.ts";
import { AppError } from "../../core/errors.ts";
import { log } from "../../log.ts";
import { validGrants } from "../../store/projects/keys.ts";
import type { LogEntry } from "../../store/events/event-log.ts";
import { type SharePiece, Stream, type StreamDeps, type StreamWanted } from "./stream.ts";

/** Maximum number of streams of one project in this process at a time. */
export const MAX_STREAMS_PER_PROJECT = 1000;
/** Time between two signs of life, milliseconds. Proxies close a connection that is silent for a minute. */
export const BEAT_MS = 20_000;
/** Time between two looks at keys and slow clients, milliseconds. A stream outlives its key by two of them at most. */
export const CHECK_MS = 2_000;
/** Milliseconds within which an admitted stream must be opened. An answer that no client reads never is. */
export const OPENING_MS = 10_000;
/** Time in which a client must have taken a piece, milliseconds. */
export const SLOW_MS = 15_000;
/** Bytes that clients of streams have not taken yet, and streams that wait for room. */
const PENDING: AdmissionLimits = { total: 64 * 1024 * 1024, perOwner: 16 * 1024 * 1024, maxWaiting: 4000 };

/** A comment, which clients ignore (HTML Living Standard, section 9.2.6). */
const BEAT = Buffer.from(":\n\n");

export interface OpenStream {
  /** As of `Stream`. Rejects if the database fails. */
  next(): Promise<Uint8Array | null>;
  end(): void;
  /** Called if the stream ends although its client has not taken everything. */
  onCut: () => void;
}

interface Opened extends OpenStream {
  /** Ends its count. */
  leave(): void;
}

/** The open streams of this process. */
export class Streams {
  readonly #deps: StreamDeps;
  readonly #open = new Map<Stream, Opened>();
  /** Open streams of each project, and those that were admitted and are not open yet. */
  readonly #perProject = new Map<string, number>();
  #cancels: (() => void)[] = [];
  #closed = false;

  constructor(deps: Omit<StreamDeps, "pending" | "share">) {
    this.#deps = { ...deps, pending: new Admission(PENDING), share: sharedPieces() };
  }

  get size(): number {
    return this.#open.size;
  }

  /**
   * Admits a stream and returns the function that opens it. It counts from now until it ends, or until it has not been opened in
   * time. Throws 429 if the project has as many as it may.
   */
  admit(wanted: StreamWanted): () => OpenStream {
    const leave = this.#enter(wanted.senderId);
    let late = false;
    const cancel = this.#deps.clock.after(OPENING_MS, () => {
      late = true;
      leave();
    });
    return () => {
      cancel();
      const stream = new Stream(this.#deps, wanted);
      const opened = {
        next: () => stream.next(),
        end: () => this.#end(stream),
        onCut: () => undefined,
        leave,
      };
      this.#add(stream, opened);
      if (late || this.#closed) this.#end(stream);
      return opened;
    };
  }

  /** Counts a stream of the project. Returns the function that ends that. */
  #enter(senderId: string): () => void {
    const count = this.#perProject.get(senderId) ?? 0;
    if (count >= MAX_STREAMS_PER_PROJECT)
      throw new AppError(
        "rate_limited",
        `At most ${MAX_STREAMS_PER_PROJECT} streams of a project are open at a time. Close some first.`,
        { retryAfterSeconds: 1 },
      );
    this.#perProject.set(senderId, count + 1);
    let counts = true;
    return () => {
      if (!counts) return;
      counts = false;
      const left = (this.#perProject.get(senderId) ?? 1) - 1;
      if (left > 0) this.#perProject.set(senderId, left);
      else this.#perProject.delete(senderId);
    };
  }

  /** Ends all streams, and takes no more. */
  close(): void {
    this.#closed = true;
    for (const stream of [...this.#open.keys()]) this.#cut(stream);
  }

  #add(stream: Stream, opened: Opened): void {
    this.#open.set(stream, opened);
    if (this.#open.size > 1) return;
    this.#repeat(BEAT_MS, () => {
      for (const one of this.#open.keys()) one.beat(BEAT);
    });
    this.#repeat(CHECK_MS, () => void this.#check());
  }

  #end(stream: Stream): void {
    stream.end();
    this.#open.get(stream)?.leave();
    if (!this.#open.delete(stream)) return;
    if (this.#open.size === 0) for (const cancel of this.#cancels.splice(0)) cancel();
  }

  /** Ends a stream. If its client is taking a piece, its connection is cut, because it may never finish. */
  #cut(stream: Stream): void {
    const opened = this.#open.get(stream);
    const isTaking = stream.givenAt !== null;
    this.#end(stream);
    if (isTaking) opened?.onCut();
  }

  /** Calls `turn` again and again while streams are open. */
  #repeat(pauseMs: number, turn: () => void): void {
    const { clock } = this.#deps;
    const at = this.#cancels.length;
    const arm = (): void => {
      this.#cancels[at] = clock.after(pauseMs, () => {
        arm();
        turn();
      });
    };
    arm();
  }

  /** Ends the streams of revoked keys and of clients that are too slow. */
  async #check(): Promise<void> {
    const now = this.#deps.clock.elapsed();
    for (const stream of [...this.#open.keys()])
      if (stream.givenAt !== null && now - stream.givenAt > SLOW_MS) this.#cut(stream);
    try {
      await this.#endRevoked();
    } catch (error) {
      // While the database is away, no stream has anything to show. The next turn asks again.
      log("live").debug("the keys of streams could not be checked", { error: String(error) });
    }
  }

  async #endRevoked(): Promise<void> {
    const streams = [...this.#open.keys()];
    const grants = new Set(streams.flatMap(({ wanted: { grant } }) => grant ?? []));
    if (grants.size === 0) return;
    this.#deps.db.refreshReads();
    const valid = await validGrants(this.#deps.db, [...grants], this.#deps.clock.now());
    for (const stream of streams) {
      const { grant } = stream.wanted;
      if (grant !== null && !valid.has(grant)) this.#cut(stream);
    }
  }
}

/** Shares pieces while they are handed to the streams of a project. Then they are collected with the piece. */
function sharedPieces(): SharePiece {
  const made = new WeakMap<readonly LogEntry[], Map<string, Promise<Uint8Array>>>();
  return (piece, key, make) => {
    const forms = made.get(piece) ?? new Map<string, Promise<Uint8Array>>();
    made.set(piece, forms);
    const form = forms.get(key) ?? make();
    forms.set(key, form);
    return form;
  };
}
