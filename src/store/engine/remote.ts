import { createClient, LibsqlBatchError, type Row } from "@libsql/client";
import { type Clock, sleep } from "../../core/time/clock.ts";
import type { Engine } from "./engine.ts";
import { EngineError, type EngineFault, errorCode } from "./errors.ts";
import { withValues } from "./deferred-content.ts";

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

const TIMED_OUT = "ETIMEDOUT";
const NOT_JSON = "HRANA_NO_JSON";
/** Codes of the network for a request that never reached the server. */
const UNREACHABLE =
  /^(?:ECONNREFUSED|ConnectionRefused|ENOTFOUND|EAI_\w+|EHOSTUNREACH|ENETUNREACH|FailedToOpenSocket|DNS\w*)$/;
/** Codes of a server for a statement or request that it understood and did not carry out. */
const ANSWERED = /^(?:SQLITE_|SQL_|TRANSACTION_|ARGS_|BLOCKED|RESPONSE_TOO_LARGE|STREAM_EXPIRED)/;

/** Opens a libSQL server over Hrana (HTTP). Each batch is one request, and so one transaction. */
export function openRemote(clock: Clock, { url, authToken }: RemoteOptions): Engine {
  const { host } = new URL(url);
  const client = createClient({
    url,
    intMode: "number",
    fetch: (request: Request) => fetchWithin(clock, request),
    ...(authToken === null ? {} : { authToken }),
  });
  const ask = <Answer>(retry: ReadonlySet<EngineFault>, request: () => Promise<Answer>): Promise<Answer> =>
    askServer(clock, host, retry, request);
  return {
    async all(sql, args) {
      return plain((await ask(RETRY_READS, () => client.execute({ sql, args }))).rows);
    },
    async first(sql, args) {
      return plain((await ask(RETRY_READS, () => client.execute({ sql, args }))).rows.slice(0, 1))[0] ?? null;
    },
    async batch(statements) {
      const ready = withValues(statements);
      const results = await ask(RETRY_WRITES, () => client.batch(ready, "write"));
      return results.map(({ rows, rowsAffected }) => ({
        rows: plain(rows),
        // With RETURNING, the rows are the changes, and not every server counts them.
        changes: Math.max(rowsAffected, rows.length),
      }));
    },
    close: async () => client.close(),
  };
}

/** Returns plain objects, as an embedded database does. The client's rows also hold their values by position. */
function plain(rows: readonly Row[]): Record<string, unknown>[] {
  return rows.map((row) => ({ ...row }));
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

/** Makes a request with a timeout for each stage, so that a server that hangs does not block its callers forever. */
async function fetchWithin(clock: Clock, request: Request): Promise<Response> {
  const body = await request.text();
  const stop = new AbortController();
  const abortAfter = (bytes: number) =>
    clock.after(SILENCE_MS + bytes / SLOWEST_BYTES_PER_MS, () => stop.abort());
  let cancel = abortAfter(body.length);
  try {
    const { method, headers, url } = request;
    const response = await fetch(url, {
      method,
      headers,
      signal: stop.signal,
      ...(body === "" ? {} : { body }),
    });
    cancel();
    cancel = abortAfter(Number(response.headers.get("content-length") ?? UNKNOWN_BYTES));
    return new Response(await response.arrayBuffer(), { status: response.status, headers: response.headers });
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    throw Object.assign(new Error("no answer within the timeout", { cause: error }), { code: TIMED_OUT });
  } finally {
    cancel();
  }
}

/** Converts an error of the client to an `EngineError`. Its message has the host, but never the token or the rest of the URL. */
function translated(host: string, error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  // The client passes on the parser's error if the answer is not JSON: a proxy's error page, or half an answer.
  const code = error instanceof SyntaxError ? NOT_JSON : errorCode(error);
  if (code === "") return error;
  const message = error.cause instanceof Error ? error.cause.message : error.message;
  if (ANSWERED.test(code)) {
    const statement = error instanceof LibsqlBatchError ? error.statementIndex : null;
    return new EngineError(error, code, statement, { message });
  }
  return new EngineError(error, code, null, noAnswer(host, code, message, statusOf(error)));
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
  const answer = status === null ? `${code}, ${reason}` : `HTTP ${status}`;
  // A server that answers 4xx has done nothing.
  const fault = status !== null && status < 500 ? "other" : "lost";
  return { fault, message: `no usable answer from the database at ${host}: ${answer}` };
}

/** Returns the HTTP status of an answer that does not follow the protocol, or null. */
function statusOf({ cause }: Error): number | null {
  return cause instanceof Error && "status" in cause && typeof cause.status === "number"
    ? cause.status
    : null;
}
