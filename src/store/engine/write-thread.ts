import { turn } from "../../core/turn.ts";
import { log } from "../../log.ts";
import { EngineError, type Statement, VALUES_PER_TURN, type Written } from "./engine.ts";
import { openWritten, StatementPacker } from "./parcel.ts";
import type { FromWriter, ToWriter } from "./write-messages.ts";

/** The thread that writes beside the event loop, and what is its work. */
export interface WriterOptions {
  /** Starts it; it is to begin with `serveWrites`. */
  open: () => Worker;
  /** Values up to which a transaction is not worth handing over. */
  valuesHere: number;
}

type Ended = Extract<FromWriter, { kind: "written" | "refused" }>;

/** The thread that writes to a database file beside the event loop. It is started when it is first wanted, and stays. */
export class WriteThread {
  readonly #path: string;
  readonly #open: () => Worker;
  readonly #packer = new StatementPacker();
  #worker: Worker | null = null;
  #opened = Promise.withResolvers<boolean>();
  #ready = false;
  /** Why it is there no more. */
  #fault: Error | null = null;
  #ended: ((ended: Ended | null) => void) | null = null;
  /** The transaction it was given last. */
  #last: Promise<unknown> = Promise.resolve();
  #closed = Promise.withResolvers<void>();
  #closing = false;

  constructor(path: string, open: () => Worker) {
    this.#path = path;
    this.#open = open;
  }

  /** Has it started where it has not been, and says whether it can be given a transaction now. */
  wake(): boolean {
    if (this.#worker === null && this.#fault === null) this.#start();
    return this.#ready && this.#fault === null;
  }

  /** Waits until it can be given a transaction. False where it cannot be had. */
  async becomesReady(): Promise<boolean> {
    return this.wake() || (this.#fault === null && (await this.#opened.promise));
  }

  /**
   * Runs the statements as one transaction, after those that it was given before. Throws `EngineError`; then none took
   * effect, but for the fault `lost`.
   */
  async batch(statements: readonly Statement[]): Promise<Written[]> {
    const before = this.#last;
    const ending = before.then(() => this.#ending(statements));
    this.#last = ending.catch(() => undefined);
    const ended = await ending;
    if (ended === null) throw this.#lost();
    if (ended.kind === "written") return openWritten(ended.parcel);
    const cause = new Error(ended.message);
    throw ended.code === "" ? cause : new EngineError(cause, ended.code, ended.statement);
  }

  /** Lets go of the file, once what is under way has ended. */
  async close(): Promise<void> {
    await this.#last;
    if (this.#worker === null || !(await this.#opened.promise) || this.#fault !== null) return;
    this.#closing = true;
    this.#tell({ kind: "close" });
    await this.#closed.promise;
    this.#worker.terminate();
  }

  async #ending(statements: readonly Statement[]): Promise<Ended | null> {
    const { promise, resolve } = Promise.withResolvers<Ended | null>();
    this.#ended = resolve;
    try {
      for (const [from, end] of slices(statements)) {
        // To pack many values takes a while, too.
        if (from > 0) await turn();
        if (this.#fault !== null) return null;
        const parcel = this.#packer.pack(statements.slice(from, end));
        this.#tell({ kind: "statements", parcel, first: from === 0, last: end === statements.length });
      }
    } catch (error) {
      // It holds the write lock meanwhile.
      this.#tell({ kind: "abandon" });
      throw error;
    }
    return promise;
  }

  #start(): void {
    this.#worker = this.#open();
    this.#worker.onmessage = ({ data }: MessageEvent<FromWriter>) => this.#heard(data);
    this.#worker.onerror = ({ message }) =>
      this.#fell(new Error(`the thread that writes has failed: ${message}`));
    this.#worker.addEventListener("close", () => this.#fell(new Error("the thread that writes has ended")));
    this.#tell({ kind: "open", path: this.#path });
  }

  #tell(told: ToWriter): void {
    const bytes = told.kind === "statements" ? told.parcel.bytes : null;
    this.#worker?.postMessage(told, bytes === null ? [] : [bytes]);
  }

  #heard(said: FromWriter): void {
    if (said.kind === "opened") {
      this.#ready = true;
      this.#opened.resolve(true);
    } else if (said.kind === "closed") this.#closed.resolve();
    else this.#ended?.(said);
  }

  #fell(error: Error): void {
    if (this.#fault !== null) return;
    if (!this.#closing) log("store").error("writes go on beside everything else", { error: error.message });
    this.#fault = error;
    this.#opened.resolve(false);
    this.#closed.resolve();
    this.#ended?.(null);
  }

  #lost(): EngineError {
    const cause = this.#fault ?? new Error("the thread that writes has ended");
    return new EngineError(cause, "", null, { fault: "lost" });
  }
}

/** Where statements are cut, so that no piece has many more values than may be worked on in one turn. */
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
