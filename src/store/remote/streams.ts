import { createTaskLimit, type TaskLimit } from "../../core/concurrency/admission.ts";
import type { Clock } from "../../core/time/clock.ts";
import { within } from "../../core/time/clock.ts";
import {
  HranaError,
  isOver,
  NO_HRANA,
  outcomeOfCursor,
  type WireOutcome,
  type WireRequest,
} from "./hrana.ts";

/*
 * Why not @libsql/client: 0.18.0, the newest on 2026-11-28, opens a stream for each call, and its `transaction` one for
 * each transaction, with a second request for the COMMIT. sqld takes eleven times as long for a read on a new stream.
 * Processor time of a call in this process, µs, compared in turns with the tests' server:
 *
 *                                        read   8 reads together   6 statements written   streams opened
 *   ours                                  104                396                    328                0
 *   execute, batch                        119                374                    341       1 per call
 *   transaction                           279                                       506       1 per call
 *   @libsql/hrana-client 0.10.0, kept      76                323                    289                0
 *
 * The last is the client's lower part. With it, the pool, ages, repeats and timeouts of this folder would remain. It
 * also loses the status of a refusal, and reads answers of more than 10 MB only as protobuf.
 */

/**
 * Requests at a time, and so streams. The server opens a connection for each stream and reads the schema, which costs more than
 * ten small requests. By default sqld has 128 connections for all processes.
 */
const AT_A_TIME = 16;
/** Idle time after which a stream is not used again, milliseconds. Servers end it after ten seconds. */
const IDLE_MS = 5000;
/** Age after which a stream is closed, milliseconds: a server's settings hold for the connections that it opens later. */
const AGE_MS = 60_000;
/** Time that closing them takes at most, milliseconds. The server ends by itself what is left. */
const CLOSE_MS = 1000;
/** The server's words for a request that something on the way has repeated: the first one may have been carried out. */
const REPEATED = /already been used/;
const EXPIRED = "STREAM_EXPIRED";

/** Posts a body, and resolves with the status and the text of the answer. */
export type Post = (url: URL, body: string) => Promise<{ status: number; text: string }>;

/** The part of a request for a stream, with the index of the request that does its work. */
export interface Pipeline {
  requests: readonly WireRequest[];
  at: number;
}

interface Stream {
  /** Names the stream in the next request; null before the first. */
  baton: string | null;
  /** Address of the next request. */
  url: URL;
  openedAt: number;
  idleSince: number;
}

/** An answer of the server: the fields that we read. */
interface PipelineAnswer {
  baton?: string | null;
  base_url?: string | null;
  results?: WireOutcome[];
}

/**
 * Makes requests on streams of a libSQL server, which stay open. A stream has one request at a time. It is used again only if
 * its last request surely left no transaction open.
 */
export class Streams {
  readonly #clock: Clock;
  readonly #url: URL;
  readonly #post: Post;
  /** Streams without a request. The one used last is at the end, so that surplus ones grow old. */
  readonly #idle: Stream[] = [];
  readonly #inTurn: TaskLimit = createTaskLimit(AT_A_TIME, Number.POSITIVE_INFINITY);

  constructor(clock: Clock, url: URL, post: Post) {
    this.#clock = clock;
    this.#url = url;
    this.#post = post;
  }

  /** Makes one HTTP request. Returns the outcome of the work in it. */
  async run(pipeline: Pipeline): Promise<WireOutcome | undefined> {
    const outcome = await this.#inTurn(async () => {
      const idle = this.#takeIdle();
      if (idle !== null)
        try {
          return await this.#runOn(idle, pipeline);
        } catch (error) {
          // Nothing was done, so even a write can be repeated.
          if (!isGone(error)) throw error;
        }
      return this.#runOn(this.#newStream(), pipeline);
    });
    return outcome ?? undefined;
  }

  /** Makes a query whose answer may have any size, on a separate stream. */
  async runLarge({ stmt }: WireRequest): Promise<WireOutcome | undefined> {
    const outcome = await this.#inTurn(async () => {
      const stream = this.#newStream();
      const body = JSON.stringify({ baton: null, batch: { steps: [{ stmt }] } });
      const { status, text } = await this.#post(new URL("v3/cursor", stream.url), body);
      if (status < 200 || status > 299) throw httpError(status, text);
      const [first = "", ...entries] = text.trimEnd().split("\n");
      this.#goOn(stream, JSON.parse(first));
      void this.#closeNow(stream);
      return outcomeOfCursor(entries);
    });
    return outcome ?? undefined;
  }

  /** Closes the streams that have no request. */
  async close(): Promise<void> {
    const closing = Promise.all(this.#idle.splice(0).map((stream) => this.#closeNow(stream)));
    await within(this.#clock, CLOSE_MS, closing, null);
  }

  async #runOn(stream: Stream, { requests, at }: Pipeline): Promise<WireOutcome | undefined> {
    const isOld = this.#clock.elapsed() - stream.openedAt > AGE_MS;
    // If its answer is lost, the server ends the stream by itself.
    const outcome = (await this.#ask(stream, requests, isOld))[at];
    if (stream.baton !== null && isOver(outcome)) {
      stream.idleSince = this.#clock.elapsed();
      this.#idle.push(stream);
    } else void this.#closeNow(stream);
    return outcome;
  }

  /** Makes a request on a stream. The last one also closes it. */
  async #ask(stream: Stream, requests: readonly WireRequest[], isLast: boolean): Promise<WireOutcome[]> {
    const all: readonly WireRequest[] = isLast ? [...requests, { type: "close" }] : requests;
    const body = JSON.stringify({ baton: stream.baton, requests: all });
    const { status, text } = await this.#post(new URL("v2/pipeline", stream.url), body);
    if (status < 200 || status > 299) throw httpError(status, text);
    const answer: PipelineAnswer | null = JSON.parse(text);
    const results = answer?.results;
    if (!Array.isArray(results) || results.length !== all.length)
      throw new HranaError("the server answered other requests", NO_HRANA);
    this.#goOn(stream, answer);
    return results;
  }

  #newStream(): Stream {
    const now = this.#clock.elapsed();
    return { baton: null, url: this.#url, openedAt: now, idleSince: now };
  }

  /** Updates the stream's state from an answer. */
  #goOn(stream: Stream, answer: PipelineAnswer | null): void {
    stream.baton = answer?.baton ?? null;
    if (typeof answer?.base_url === "string") stream.url = new URL(answer.base_url);
  }

  /** Tells the server to end a stream, if it has one. If that fails, the server ends it by itself. */
  async #closeNow(stream: Stream): Promise<void> {
    if (stream.baton !== null) await this.#ask(stream, [], true).catch(() => undefined);
  }

  /** Returns the stream that was used last, and closes those that were idle for long. */
  #takeIdle(): Stream | null {
    const oldest = this.#clock.elapsed() - IDLE_MS;
    const fresh = this.#idle.findIndex(({ idleSince }) => idleSince > oldest);
    const stale = this.#idle.splice(0, fresh < 0 ? this.#idle.length : fresh);
    for (const stream of stale) void this.#closeNow(stream);
    return this.#idle.pop() ?? null;
  }
}

/** Returns whether the server has no such stream any more: it has ended it, or restarted. It did nothing then. */
function isGone(error: unknown): boolean {
  if (!(error instanceof HranaError) || error.status === null) return false;
  return error.code === EXPIRED || (error.status >= 400 && error.status < 500);
}

function httpError(status: number, text: string): HranaError {
  // Without a status, its outcome counts as unknown.
  if (REPEATED.test(text)) return new HranaError(text.trim(), "HRANA_REPEATED");
  const said = errorIn(text);
  if (said === null) return new HranaError(`HTTP ${status}: ${text.trim()}`, "SERVER_ERROR", { status });
  return new HranaError(said.message, said.code ?? "UNKNOWN", { status });
}

/** Returns the protocol's error in the text of an answer; null if it has none. */
function errorIn(text: string): { message: string; code?: string } | null {
  try {
    const said = JSON.parse(text);
    return typeof said?.message === "string" ? said : null;
  } catch {
    return null;
  }
}
