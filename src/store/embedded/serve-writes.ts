import { type Connection, connect, Transaction } from "./connection.ts";
import { EngineError } from "../sql/errors.ts";
import { encodeResults, type FromWriter, StatementDecoder, type ToWriter } from "./worker-codec.ts";

declare const self: Worker;

/** Makes this worker thread the writer of a database file. */
export function serveWrites(): void {
  const writer = new Writer();
  self.onmessage = ({ data }: MessageEvent<ToWriter>): void => {
    try {
      const answer = writer.receive(data);
      if (answer !== null) post(answer);
    } catch (error) {
      // The thread ends, but its connection stays open. Without a rollback it would hold the write lock until the process ends.
      writer.receive({ kind: "rollback" });
      throw error;
    }
  };
}

function post(message: FromWriter): void {
  const bytes = message.kind === "written" ? message.results.bytes : null;
  postMessage(message, bytes === null ? [] : [bytes]);
}

class Writer {
  readonly #decoder = new StatementDecoder();
  #connection: Connection | null = null;
  #transaction: Transaction | null = null;
  /** Why the current transaction has failed. Its remaining pieces are not run. */
  #refused: FromWriter | null = null;

  receive(message: ToWriter): FromWriter | null {
    switch (message.kind) {
      case "open":
        this.#connection = connect(message.path);
        return { kind: "opened" };
      case "close":
        this.#connection?.close();
        return { kind: "closed" };
      case "rollback":
        this.#transaction?.rollback();
        return null;
      case "statements":
        return this.#run(message);
    }
  }

  #run({ encoded, first, last }: Extract<ToWriter, { kind: "statements" }>): FromWriter | null {
    // Decoded even if they are not run, because they may carry SQL for later ones.
    const statements = this.#decoder.decode(encoded);
    if (first) this.#refused = null;
    let written: FromWriter | null = null;
    if (this.#refused === null)
      try {
        if (first) this.#transaction = new Transaction(this.#open());
        this.#transaction?.run(statements);
        if (last && this.#transaction !== null) written = commit(this.#transaction);
      } catch (error) {
        this.#refused = refusal(error);
      }
    return last ? (this.#refused ?? written) : null;
  }

  #open(): Connection {
    if (this.#connection === null) throw new Error("the write thread has opened no database");
    return this.#connection;
  }
}

function commit(transaction: Transaction): FromWriter {
  return { kind: "written", results: encodeResults(transaction.commit()) };
}

function refusal(error: unknown): FromWriter {
  const [code, statement] = error instanceof EngineError ? [error.code, error.statement] : ["", null];
  return {
    kind: "refused",
    message: error instanceof Error ? error.message : String(error),
    code,
    statement,
  };
}
