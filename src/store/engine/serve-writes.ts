import { type Connection, connect, Transaction } from "./connection.ts";
import { EngineError } from "./engine.ts";
import { packWritten, StatementOpener } from "./parcel.ts";
import type { FromWriter, ToWriter } from "./write-messages.ts";

declare const self: Worker;

/** Makes this thread the one that writes to a database file beside the event loop. */
export function serveWrites(): void {
  const writer = new Writer();
  self.onmessage = ({ data }: MessageEvent<ToWriter>): void => {
    try {
      const said = writer.hear(data);
      if (said !== null) say(said);
    } catch (error) {
      // The thread ends, and its connection stays open: the write lock would be held for as long as the process lives.
      writer.hear({ kind: "abandon" });
      throw error;
    }
  };
}

function say(said: FromWriter): void {
  const bytes = said.kind === "written" ? said.parcel.bytes : null;
  postMessage(said, bytes === null ? [] : [bytes]);
}

class Writer {
  readonly #opener = new StatementOpener();
  #connection: Connection | null = null;
  #transaction: Transaction | null = null;
  /** Why the transaction under way has failed: what is left of it is not run. */
  #refused: FromWriter | null = null;

  hear(told: ToWriter): FromWriter | null {
    switch (told.kind) {
      case "open":
        this.#connection = connect(told.path);
        return { kind: "opened" };
      case "close":
        this.#connection?.close();
        return { kind: "closed" };
      case "abandon":
        this.#transaction?.abandon();
        return null;
      case "statements":
        return this.#work(told);
    }
  }

  #work({ parcel, first, last }: Extract<ToWriter, { kind: "statements" }>): FromWriter | null {
    // Even of what is not run: it tells texts.
    const statements = this.#opener.open(parcel);
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
    if (this.#connection === null) throw new Error("the thread has opened no database");
    return this.#connection;
  }
}

function commit(transaction: Transaction): FromWriter {
  return { kind: "written", parcel: packWritten(transaction.commit()) };
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
