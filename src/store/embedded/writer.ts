import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import { log } from "../../log.ts";
import { type Statement, VALUES_PER_TURN, type Written } from "../sql/engine.ts";
import { EngineError } from "../sql/errors.ts";
import { decodeResults, type FromWriter, StatementEncoder, type ToWriter } from "./worker-codec.ts";

/** The write thread, and which transactions it gets; `embedded` says why. */
export interface WriterOptions {
  /** Starts the thread, which must call `serveWrites` first. */
  open: () => Worker;
  /** Values up to which a transaction runs on the event loop. */
  maxValuesHere: number;
}

type Outcome = Extract<FromWriter, { kind: "written" | "refused" }>;

/** A thread that runs large transactions on a database file. It starts when it is first needed, and stays. */
export class Writer {
  readonly #path: string;
  readonly #open: () => Worker;
  readonly #encoder = new StatementEncoder();
  #worker: Worker | null = null;
  #opened = Promise.withResolvers<boolean>();
  #isReady = false;
  /** Why the thread has ended. */
  #fault: Error | null = null;
  #resolveOutcome: ((outcome: Outcome | null) => void) | null = null;
  /** Settles when the newest transaction has ended. */
  #last: Promise<unknown> = Promise.resolve();
  #closed = Promise.withResolvers<void>();
  #isClosing = false;

  constructor(path: string, open: () => Worker) {
    this.#path = path;
    this.#open = open;
  }

  /** Starts the thread if it has never run. Returns true if it can take a transaction now. */
  start(): boolean {
    if (this.#worker === null && this.#fault === null) this.#start();
    return this.#isReady && this.#fault === null;
  }

  /** Waits until the thread can take a transaction. Returns false if it never will. */
  async waitUntilReady(): Promise<boolean> {
    return this.start() || (this.#fault === null && (await this.#opened.promise));
  }

  /**
   * Runs the statements as one transaction, after the transactions before it. If it throws `EngineError`, none took effect,
   * except with the fault `lost`: then the outcome is unknown.
   */
  async batch(statements: readonly Statement[]): Promise<Written[]> {
    const ending = this.#last.then(() => this.#run(statements));
    this.#last = ending.catch(() => undefined);
    const outcome = await ending;
    if (outcome === null) throw this.#lost();
    if (outcome.kind === "written") return decodeResults(outcome.results);
    const cause = new Error(outcome.message);
    throw outcome.code === "" ? cause : new EngineError(cause, outcome.code, outcome.statement);
  }

  /** Waits for the transactions that were begun, then ends the thread. */
  async close(): Promise<void> {
    await this.#last;
    if (this.#worker === null || !(await this.#opened.promise) || this.#fault !== null) return;
    this.#isClosing = true;
    this.#post({ kind: "close" });
    await this.#closed.promise;
    this.#worker.terminate();
  }

  async #run(statements: readonly Statement[]): Promise<Outcome | null> {
    const { promise, resolve } = Promise.withResolvers<Outcome | null>();
    this.#resolveOutcome = resolve;
    try {
      for (const [from, end] of slices(statements)) {
        // Encoding many values takes a while, too.
        if (from > 0) await yieldToEventLoop();
        if (this.#fault !== null) return null;
        const encoded = this.#encoder.encode(statements.slice(from, end));
        this.#post({ kind: "statements", encoded, first: from === 0, last: end === statements.length });
      }
    } catch (error) {
      // The thread holds the write lock since the first piece.
      this.#post({ kind: "rollback" });
      throw error;
    }
    return promise;
  }

  #start(): void {
    this.#worker = this.#open();
    this.#worker.onmessage = ({ data }: MessageEvent<FromWriter>) => this.#receive(data);
    this.#worker.onerror = ({ message }) => this.#fail(new Error(`the write thread has failed: ${message}`));
    this.#worker.addEventListener("close", () => this.#fail(new Error("the write thread has ended")));
    this.#post({ kind: "open", path: this.#path });
  }

  #post(message: ToWriter): void {
    const bytes = message.kind === "statements" ? message.encoded.bytes : null;
    this.#worker?.postMessage(message, bytes === null ? [] : [bytes]);
  }

  #receive(message: FromWriter): void {
    if (message.kind === "opened") {
      this.#isReady = true;
      this.#opened.resolve(true);
    } else if (message.kind === "closed") this.#closed.resolve();
    else this.#resolveOutcome?.(message);
  }

  #fail(error: Error): void {
    if (this.#fault !== null) return;
    if (!this.#isClosing)
      log("store").error("the write thread has ended: large writes run on the event loop now", {
        error: error.message,
      });
    this.#fault = error;
    this.#opened.resolve(false);
    this.#closed.resolve();
    this.#resolveOutcome?.(null);
  }

  #lost(): EngineError {
    const cause = this.#fault ?? new Error("the write thread has ended");
    return new EngineError(cause, "", null, { fault: "lost" });
  }
}

/** Cuts statements into pieces that have about VALUES_PER_TURN values at most. */
function* slices(statements: readonly Statement[]): Generator<[from: number, end: number]> {
  let from = 0;
  let values = 0;
  for (const [at, { args }] of statements.entries()) {
    values += args.length;
    if (values <= VALUES_PER_TURN && at < statements.length - 1) continue;
    yield [from, at + 1];
    from = at + 1;
    values = 0;
  }
}
