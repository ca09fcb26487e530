import { type Connection, Refusal } from "./hrana-server-connection.ts";
import { wireError, type WireRequest } from "./hrana-server-values.ts";

/** One stream of a client: a connection and its stored SQL strings. */
interface Stream {
  connection: Connection;
  sqls: Map<number, string>;
  baton: string;
  closed: boolean;
  expires: Timer | null;
}

export interface PipelineBody {
  baton?: string | null;
  requests: WireRequest[];
}

/** The HTTP answer if there is no pipeline to answer. */
export class HttpRefusal extends Error {
  readonly status: number;
  readonly body: string | object;
  constructor(status: number, body: string | object) {
    super(JSON.stringify(body));
    this.status = status;
    this.body = body;
  }
}

/** sqld's words. */
const BATON_INVALID = "The received baton is invalid";
const BATON_REUSED = "Received a baton that has already been used";
const EXPIRED = { message: "The stream has expired due to inactivity", code: "STREAM_EXPIRED" };

/** Streams of a server. If a request has no baton, it begins a new stream. */
export class Streams {
  readonly #open: () => Connection;
  readonly #settings: { idleMs: number; fineCodes: boolean };
  readonly #count: (name: string) => void;
  readonly #idle: Connection[] = [];
  readonly #streams = new Map<string, Stream>();
  readonly #expired = new Set<string>();
  readonly #used = new Set<string>();

  constructor(
    open: () => Connection,
    settings: { idleMs: number; fineCodes: boolean },
    count: (name: string) => void,
  ) {
    this.#open = open;
    this.#settings = settings;
    this.#count = count;
  }

  /** Runs the requests of one pipeline, one after another. */
  pipeline({ baton = null, requests }: PipelineBody): object {
    const stream = baton === null ? this.#begin() : this.#resume(baton);
    const results = requests.map((request) => this.#handle(stream, request));
    return { baton: this.#release(stream), base_url: null, results };
  }

  #begin(): Stream {
    this.#count("stream");
    const connection = this.#idle.pop() ?? this.#open();
    return { connection, sqls: new Map(), baton: "", closed: false, expires: null };
  }

  #resume(baton: string): Stream {
    if (this.#expired.has(baton)) throw new HttpRefusal(500, EXPIRED);
    const stream = this.#streams.get(baton);
    if (stream === undefined)
      throw new HttpRefusal(400, this.#used.has(baton) ? BATON_REUSED : BATON_INVALID);
    // A baton is valid once. Each answer carries the next one.
    this.#streams.delete(baton);
    this.#used.add(baton);
    if (stream.expires !== null) clearTimeout(stream.expires);
    return stream;
  }

  #release(stream: Stream): string | null {
    if (stream.closed) {
      this.#giveBack(stream.connection);
      return null;
    }
    const baton = crypto.randomUUID();
    this.#streams.set(baton, stream);
    stream.expires = setTimeout(() => {
      this.#streams.delete(baton);
      this.#expired.add(baton);
      this.#giveBack(stream.connection);
    }, this.#settings.idleMs);
    return baton;
  }

  #giveBack(connection: Connection): void {
    connection.reset();
    if (!connection.hasFailed()) this.#idle.push(connection);
  }

  #handle(stream: Stream, request: WireRequest): object {
    this.#count(request.type);
    try {
      return { type: "ok", response: { type: request.type, ...this.#answer(stream, request) } };
    } catch (error) {
      return { type: "error", error: wireError(error, this.#settings.fineCodes) };
    }
  }

  #answer(stream: Stream, request: WireRequest): object {
    const { connection, sqls } = stream;
    const text = (): string => {
      const sql = request.sql ?? sqls.get(request.sql_id ?? -1);
      if (sql === undefined) throw new Refusal("SQL_NOT_FOUND", "SQL text was not found");
      return sql;
    };
    switch (request.type) {
      case "close":
        stream.closed = true;
        return {};
      case "execute":
        return { result: connection.execute(request.stmt ?? {}, sqls) };
      case "batch":
        return { result: connection.batch(request.batch?.steps ?? [], sqls) };
      case "sequence":
        connection.sequence(text());
        return {};
      case "describe":
        return { result: connection.describe(text()) };
      case "store_sql":
        sqls.set(request.sql_id ?? -1, request.sql ?? "");
        return {};
      case "close_sql":
        sqls.delete(request.sql_id ?? -1);
        return {};
      case "get_autocommit":
        return { is_autocommit: connection.isAutocommit() };
      default:
        throw new HttpRefusal(400, `unknown request ${request.type}`);
    }
  }
}
