import { type Clock, sleep } from "../../core/time/clock.ts";
import type { Engine, Value } from "../sql/engine.ts";
import { EngineError, type EngineFault, errorCode } from "../sql/errors.ts";
import { withValues } from "../sql/deferred-content.ts";
import {
  HranaError,
  isTooLarge,
  outcomesOf,
  type Query,
  queriesRequest,
  queryRequest,
  rowsOf,
  transactionRequests,
  type WireOutcome,
  writtenOf,
} from "./hrana.ts";
import { Streams } from "./streams.ts";

export interface RemoteOptions {
  /** `libsql://`, `http://` or `https://`. */
  url: string;
  authToken: string | null;
}

/** Time that a server may be silent, milliseconds. */
export const SILENCE_MS = 10_000;
/** Slowest connection that transfers are given time for: 4 Mbit/s, in bytes a millisecond. */
const SLOWEST_BYTES_PER_MS = 500;
/** Assumed size of an answer without Content-Length. */
const UNKNOWN_BYTES = 40_000_000;
/** Pauses before retries: the server may be restarting, or may have closed an idle connection just as we wrote to it. */
const RETRY_PAUSES_MS: readonly number[] = [50, 250];

/** Faults after which a request is repeated: a read always, a write only if the first try never reached the server. */
const RETRY_READS: ReadonlySet<EngineFault> = new Set(["unreachable", "lost"]);
const RETRY_WRITES: ReadonlySet<EngineFault> = new Set(["unreachable"]);

/**
 * Maximum number of queries in one transaction. Its answer comes in one piece, so the first query waits for the
 * last.
 */
const MOST_TOGETHER = 16;

type Rows = Record<string, unknown>[];

const TIMED_OUT = "ETIMEDOUT";
const NOT_JSON = "HRANA_NO_JSON";
const TOO_MANY = 429;
/** Codes of the network for a request that never reached the server. */
const UNREACHABLE =
  /^(?:ECONNREFUSED|ConnectionRefused|ENOTFOUND|EAI_\w+|EHOSTUNREACH|ENETUNREACH|FailedToOpenSocket|DNS\w*)$/;
/** Codes of a server for a statement or request that it understood and did not carry out. */
const ANSWERED = /^(?:SQLITE_|SQL_|TRANSACTION_|ARGS_|BLOCKED|RESPONSE_TOO_LARGE|STREAM_EXPIRED)/;

/** Opens a libSQL server over Hrana (HTTP). Each batch is one request, and so one transaction. */
export function openRemote(clock: Clock, { url, authToken }: RemoteOptions): Engine {
  const address = httpAddress(url);
  const headers = {
    "content-type": "application/json",
    // To compress an answer costs sqld as much as a small query.
    "accept-encoding": "identity",
    ...(authToken === null ? {} : { authorization: `Bearer ${authToken}` }),
  };
  const streams = new Streams(clock, address, (to, body) => postWithin(clock, to, headers, body));
  const ask = <Answer>(retry: ReadonlySet<EngineFault>, request: () => Promise<Answer>): Promise<Answer> =>
    askServer(clock, address.host, retry, request);
  const rows = async (query: Query, outcome: WireOutcome | undefined): Promise<Rows> =>
    rowsOf(isTooLarge(outcome) ? await streams.runLarge(queryRequest(query)) : outcome);
  const one = (query: Query): Promise<Rows> =>
    ask(RETRY_READS, async () => rows(query, await streams.run({ requests: [queryRequest(query)], at: 0 })));
  const read = together((queries) => {
    const [first] = queries;
    if (first !== undefined && queries.length === 1) return [one(first)];
    const answered = ask(RETRY_READS, async () => {
      const outcome = await streams.run({ requests: [queriesRequest(queries)], at: 0 });
      return isTooLarge(outcome) ? null : outcomesOf(outcome, queries.length);
    });
    return queries.map(async (query, at) => {
      const outcomes = await answered;
      return outcomes === null ? one(query) : ask(RETRY_READS, () => rows(query, outcomes[at]));
    });
  });
  return {
    all: read,
    first: async (sql, args) => (await read(sql, args))[0] ?? null,
    async batch(statements) {
      const ready = withValues(statements);
      const transaction = transactionRequests(ready);
      return ask(RETRY_WRITES, async () => writtenOf(await streams.run(transaction), ready.length));
    },
    close: () => streams.close(),
  };
}

/**
 * Returns a function that makes queries by `run`. Those that code asks for without waiting in between are run together, and take one
 * round trip. They show the same state, as the reads of one turn from a file do.
 */
function together(
  run: (queries: readonly Query[]) => Promise<Rows>[],
): (sql: string, args: Value[]) => Promise<Rows> {
  let waiting: { query: Query; take: (rows: Promise<Rows>) => void }[] = [];
  const runWaiting = () => {
    const members = waiting;
    waiting = [];
    if (members.length === 0) return;
    const answers = run(members.map(({ query }) => query));
    for (const [at, rows] of answers.entries()) members[at]?.take(rows);
  };
  return (sql, args) =>
    new Promise((resolve) => {
      waiting.push({ query: { sql, args }, take: resolve });
      if (waiting.length === 1) queueMicrotask(runWaiting);
      else if (waiting.length === MOST_TOGETHER) runWaiting();
    });
}

/** Returns the address for HTTP. With `?tls=0`, a `libsql:` URL is not encrypted. */
function httpAddress(url: string): URL {
  const plain = /^libsql:.*[?&]tls=0(?:&|$)/.test(url);
  return new URL(url.replace(/^libsql:/, plain ? "http:" : "https:"));
}

/** Makes a request, and repeats it after a pause if that is safe. A request that timed out is not repeated. */
async function askServer<Answer>(
  clock: Clock,
  host: string,
  retry: ReadonlySet<EngineFault>,
  request: () => Promise<Answer>,
): Promise<Answer> {
  for (const pause of [...RETRY_PAUSES_MS, null])
    try {
      return await request();
    } catch (error) {
      const failure = translated(host, error);
      const mayRetry =
        failure instanceof EngineError && retry.has(failure.fault) && failure.code !== TIMED_OUT;
      if (!mayRetry || pause === null) throw failure;
      await sleep(clock, pause);
    }
  throw new Error("unreachable: the last try returns or throws");
}

/** Posts a body with a timeout for each stage, so that a server that hangs does not block its callers forever. */
async function postWithin(
  clock: Clock,
  url: URL,
  headers: Record<string, string>,
  body: string,
): Promise<{ status: number; text: string }> {
  const stop = new AbortController();
  const abortAfter = (bytes: number) =>
    clock.after(SILENCE_MS + bytes / SLOWEST_BYTES_PER_MS, () => stop.abort());
  let cancel = abortAfter(body.length);
  try {
    const response = await fetch(url, { method: "POST", headers, body, signal: stop.signal });
    cancel();
    cancel = abortAfter(Number(response.headers.get("content-length") ?? UNKNOWN_BYTES));
    return { status: response.status, text: await response.text() };
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    throw Object.assign(new Error("no answer within the timeout", { cause: error }), { code: TIMED_OUT });
  } finally {
    cancel();
  }
}

/** Converts a failure to an `EngineError`. Its message has the host, but never the token or the rest of the URL. */
function translated(host: string, error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  // The answer is not JSON: a proxy's error page, or half an answer.
  const code = error instanceof SyntaxError ? NOT_JSON : errorCode(error);
  if (code === "") return error;
  if (ANSWERED.test(code)) {
    const statement = error instanceof HranaError ? error.statement : null;
    return new EngineError(error, code, statement);
  }
  const status = error instanceof HranaError ? error.status : null;
  return new EngineError(error, code, null, noAnswer(host, code, error.message, status));
}

function noAnswer(
  host: string,
  code: string,
  reason: string,
  status: number | null,
): { fault: EngineFault; message: string } {
  if (UNREACHABLE.test(code))
    return { fault: "unreachable", message: `the database at ${host} cannot be reached: ${code}` };
  if (status === 401 || status === 403)
    return {
      fault: "other",
      message: `the database at ${host} refuses the token (DATABASE_AUTH_TOKEN): HTTP ${status}`,
    };
  // It has no connection to spare, so nothing was done.
  if (status === TOO_MANY)
    return { fault: "busy", message: `the database at ${host} is too busy: HTTP ${status}` };
  const answer = status === null ? `${code}, ${reason}` : `HTTP ${status}`;
  // A server that answers 4xx has done nothing.
  const fault = status !== null && status < 500 ? "other" : "lost";
  return { fault, message: `no usable answer from the database at ${host}: ${answer}` };
}
