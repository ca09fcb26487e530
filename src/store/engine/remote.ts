import { createClient, LibsqlBatchError, type Row } from "@libsql/client";
import { type Clock, sleep } from "../../core/clock.ts";
import { type Engine, EngineError, type EngineFault, errorCode } from "./engine.ts";
import { ready } from "./later-content.ts";

export interface RemoteOptions {
  /** `libsql://`, `http://` or `https://`. */
  url: string;
  authToken: string | null;
}

/** How long a server may be silent before a request is given up, milliseconds. */
export const SILENCE_MS = 10_000;
/** What goes over the slowest line that we wait for besides: 4 Mbit/s, in bytes a millisecond. */
const SLOWEST_BYTES_PER_MS = 500;
/** Taken for the size of an answer that does not tell its own. */
const UNTOLD_BYTES = 40_000_000;
/** Pauses before a request is made again: a server restarts, or has closed an idle connection as we wrote to it. */
const RETRY_PAUSES_MS: readonly number[] = [50, 250];

/** What may be asked again: a read always, a write only where the first try has certainly not been seen. */
const READS_AGAIN: ReadonlySet<EngineFault> = new Set(["unreachable", "lost"]);
const WRITES_AGAIN: ReadonlySet<EngineFault> = new Set(["unreachable"]);

const TIMED_OUT = "ETIMEDOUT";
const NO_JSON = "HRANA_NO_JSON";
/** Codes of the network for a server that was never spoken to. */
const UNREACHABLE =
  /^(?:ECONNREFUSED|ConnectionRefused|ENOTFOUND|EAI_\w+|EHOSTUNREACH|ENETUNREACH|FailedToOpenSocket|DNS\w*)$/;
/** Codes that a server gives to a statement, or to a request, that it has understood and not carried out. */
const ANSWERED = /^(?:SQLITE_|SQL_|TRANSACTION_|ARGS_|BLOCKED|RESPONSE_TOO_LARGE|STREAM_EXPIRED)/;

/** A libSQL server, spoken to in Hrana over HTTP. Each batch is one request, and so one transaction. */
export function openRemote(clock: Clock, { url, authToken }: RemoteOptions): Engine {
  const { host } = new URL(url);
  const client = createClient({
    url,
    intMode: "number",
    fetch: (request: Request) => fetchWithin(clock, request),
    ...(authToken === null ? {} : { authToken }),
  });
  const ask = <Answer>(again: ReadonlySet<EngineFault>, request: () => Promise<Answer>): Promise<Answer> =>
    asked(clock, host, again, request);
  return {
    async all(sql, args) {
      return plain((await ask(READS_AGAIN, () => client.execute({ sql, args }))).rows);
    },
    async first(sql, args) {
      return plain((await ask(READS_AGAIN, () => client.execute({ sql, args }))).rows.slice(0, 1))[0] ?? null;
    },
    async batch(statements) {
      const made = ready(statements);
      const results = await ask(WRITES_AGAIN, () => client.batch(made, "write"));
      return results.map(({ rows, rowsAffected }) => ({
        rows: plain(rows),
        // A statement with RETURNING: its rows are what it changed, and not every server counts them.
        changes: Math.max(rowsAffected, rows.length),
      }));
    },
    close: async () => client.close(),
  };
}

/** Rows as an embedded database gives them: the client's have their values by position too. */
function plain(rows: readonly Row[]): Record<string, unknown>[] {
  return rows.map((row) => ({ ...row }));
}

/** Makes a request, and again after a pause where that is safe. A limit that has passed is not waited for twice. */
async function asked<Answer>(
  clock: Clock,
  host: string,
  again: ReadonlySet<EngineFault>,
  request: () => Promise<Answer>,
): Promise<Answer> {
  for (const pause of [...RETRY_PAUSES_MS, null])
    try {
      return await request();
    } catch (error) {
      const known = translated(host, error);
      const passing = known instanceof EngineError && again.has(known.fault) && known.code !== TIMED_OUT;
      if (!passing || pause === null) throw known;
      await sleep(clock, pause);
    }
  throw new Error("the last try neither gave nor threw");
}

/** A request whose every stage has a limit, so that a server that hangs holds nobody for good. */
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
    cancel = abortAfter(Number(response.headers.get("content-length") ?? UNTOLD_BYTES));
    return new Response(await response.arrayBuffer(), { status: response.status, headers: response.headers });
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    throw Object.assign(new Error("no answer within the limit", { cause: error }), { code: TIMED_OUT });
  } finally {
    cancel();
  }
}

/** The failure in our own terms. The token and the rest of the URL stay out of what is said. */
function translated(host: string, error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  // What is no JSON reaches us as the parser's own complaint: a page of a proxy's, or half an answer.
  const code = error instanceof SyntaxError ? NO_JSON : errorCode(error);
  if (code === "") return error;
  const said = error.cause instanceof Error ? error.cause.message : error.message;
  if (ANSWERED.test(code)) {
    const statement = error instanceof LibsqlBatchError ? error.statementIndex : null;
    return new EngineError(error, code, statement, { message: said });
  }
  return new EngineError(error, code, null, unanswered(host, code, said, statusOf(error)));
}

function unanswered(
  host: string,
  code: string,
  said: string,
  status: number | null,
): { fault: EngineFault; message: string } {
  if (UNREACHABLE.test(code))
    return { fault: "unreachable", message: `the database at ${host} cannot be reached: ${code}` };
  if (status === 401 || status === 403)
    return {
      fault: "other",
      message: `the database at ${host} refuses the token (DATABASE_AUTH_TOKEN): HTTP ${status}`,
    };
  const answer = status === null ? `${code}, ${said}` : `HTTP ${status}`;
  // What a server refuses with 4xx it has not done.
  const fault = status !== null && status < 500 ? "other" : "lost";
  return { fault, message: `no usable answer from the database at ${host}: ${answer}` };
}

/** The HTTP status of an answer that was none of the protocol. */
function statusOf({ cause }: Error): number | null {
  return cause instanceof Error && "status" in cause && typeof cause.status === "number"
    ? cause.status
    : null;
}
