import { type ErrorDetails, PostriderError } from "./errors.ts";
import { ApiPromise, List, type Page, type WithResponse } from "./promises.ts";
import type {
  Answer,
  Body,
  ClientOptions,
  ImportFile,
  Item,
  OperationId,
  Query,
  RequestOptions,
} from "./types.ts";

const DEFAULT_URL = "http://localhost:3000";
const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_RETRIES = 2;
/** The first wait before a retry. Each following one is twice as long. */
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8000;
/** If the service asks for a longer wait than this, the error is thrown at once. */
const MAX_RETRY_AFTER_SECONDS = 60;
/** Characters of an answer that is no JSON, as the message of an error. */
const MAX_TEXT_CHARS = 200;

type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE";

/** The parts of a request. */
export interface Call<Id extends OperationId> {
  body?: Body<Id>;
  /** A body that is no JSON. */
  file?: ImportFile;
  query?: Query<Id> | undefined;
  options?: RequestOptions | undefined;
}

/** Sends requests. Each namespace of the client has the same one. */
export interface Transport {
  /** Sends an operation whose answer is JSON, or empty. */
  json<Id extends OperationId>(method: Method, path: string, call?: Call<Id>): ApiPromise<Answer<Id>>;
  /** Sends an operation whose answer is bytes. */
  bytes<Id extends OperationId>(path: string, call?: Call<Id>): ApiPromise<Uint8Array>;
  /** Opens an operation whose answer is a stream. The timeout ends when the answer begins. */
  open<Id extends OperationId>(path: string, call?: Call<Id>): Promise<Response>;
  /** Sends an operation that lists. */
  list<Id extends OperationId>(path: string, call?: Call<Id>): List<Item<Id>>;
}

/** Puts values into a path: path`/v1/emails/${id}`. */
export function path(texts: TemplateStringsArray, ...values: string[]): string {
  return texts.reduce((whole, text, index) => {
    const value = values[index - 1] ?? "";
    // An empty segment would name the collection, and `..` another resource.
    if (/^\.{0,2}$/.test(value)) throw new TypeError(`${JSON.stringify(value)} is not an id`);
    return `${whole}${encodeURIComponent(value)}${text}`;
  });
}

/** Returns a variable of the environment, on runtimes that have one. */
function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name];
}

/** Makes a transport. Throws if there is no API key. */
export function createTransport(options: ClientOptions): Transport {
  const apiKey = options.apiKey ?? environment("POSTRIDER_API_KEY");
  if (!apiKey) throw new TypeError("An API key is needed: new Postrider({ apiKey }), or POSTRIDER_API_KEY");
  const base = (options.baseUrl ?? environment("POSTRIDER_URL") ?? DEFAULT_URL).replace(/\/+$/, "");
  const settings: Settings = { ...options, apiKey, base };
  const json = <Id extends OperationId>(method: Method, path: string, call: Call<Id> = {}) =>
    request(settings, method, path, call).then(async (response) => ({
      data: (response.status === 204 ? undefined : await response.json()) as Answer<Id>,
      response,
    }));
  return {
    json: (method, path, call) => new ApiPromise(() => json(method, path, call)).start(),
    bytes: (path, call = {}) =>
      new ApiPromise(async () => {
        const response = await request(settings, "GET", path, call);
        return { data: new Uint8Array(await response.arrayBuffer()), response };
      }).start(),
    open: (path, call = {}) => request(settings, "GET", path, call, untouched),
    list<Id extends OperationId>(path: string, call: Call<Id> = {}) {
      const get = async (query: Query<Id> | undefined) =>
        (await json<Id>("GET", path, { ...call, query })) as WithResponse<Page<Item<Id>>>;
      return new List<Item<Id>>(
        () => get(call.query),
        async (cursor) => (await get({ ...call.query, cursor } as object as Query<Id>)).data,
      );
    },
  };
}

interface Settings extends ClientOptions {
  apiKey: string;
  base: string;
}

/** Sends a request, and repeats it while that may help. Rejects with a `PostriderError`, or with the signal's reason. */
async function request<Id extends OperationId>(
  settings: Settings,
  method: Method,
  path: string,
  { body, file, query, options = {} }: Call<Id>,
  receive = read,
): Promise<Response> {
  const url = settings.base + path + queryText(query);
  const init = { method, ...contentOf(settings, method, body, file, options) };
  const retries = options.maxRetries ?? settings.maxRetries ?? DEFAULT_RETRIES;
  for (let tries = 0; ; tries++) {
    const outcome = await attempt(settings, url, init, options, receive);
    if (outcome instanceof Response) return outcome;
    const wait = tries < retries ? waitBefore(tries, outcome) : null;
    if (wait === null) throw outcome;
    await sleep(wait, options.signal);
  }
}

function queryText(query: object | undefined): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined);
  return given.length === 0
    ? ""
    : `?${new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)]))}`;
}

function contentOf(
  settings: Settings,
  method: Method,
  body: unknown,
  file: ImportFile | undefined,
  options: RequestOptions,
) {
  const project = options.project ?? settings.project;
  // Each try has this key, so that a send whose answer was lost is not sent again.
  const key = options.idempotencyKey ?? (method === "POST" ? crypto.randomUUID() : undefined);
  const type = file === undefined ? (body === undefined ? undefined : "application/json") : typeOf(file);
  const headers: Record<string, string> = {
    authorization: `Bearer ${settings.apiKey}`,
    ...(project === undefined ? {} : { "x-service-product": project }),
    ...(key === undefined ? {} : { "idempotency-key": key }),
    ...(type === undefined ? {} : { "content-type": type }),
    ...options.headers,
  };
  if (file !== undefined) return { headers, body: file };
  return body === undefined ? { headers } : { headers, body: JSON.stringify(body) };
}

/** Returns the content type of a file: lines of JSON begin with a brace. */
function typeOf(file: ImportFile): string {
  if (typeof file !== "string") return file.type || "text/csv";
  return file.trimStart().startsWith("{") ? "application/x-ndjson" : "text/csv";
}

/** Sends a request once. Returns a response that is 2xx, or why there is none. */
async function attempt(
  settings: Settings,
  url: string,
  init: RequestInit,
  { signal, timeoutMs = settings.timeoutMs ?? DEFAULT_TIMEOUT_MS }: RequestOptions,
  receive: typeof read,
): Promise<Response | PostriderError> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  const abort = () => controller.abort();
  const timer = setTimeout(abort, timeoutMs);
  signal?.addEventListener("abort", abort, { once: true });
  try {
    const send = settings.fetch ?? globalThis.fetch;
    const response = await send(url, { ...init, signal: controller.signal });
    return response.ok ? await receive(response) : await errorOf(response);
  } catch (cause) {
    signal?.throwIfAborted();
    if (!controller.signal.aborted)
      return new PostriderError(`${url} could not be reached.`, {
        type: "connection_error",
        status: 0,
        cause,
      });
    return new PostriderError(`No answer within ${timeoutMs} ms.`, { type: "timeout", status: 0, cause });
  } finally {
    clearTimeout(timer);
    // A stream is still read after this, and must end with the signal.
    if (receive === read) signal?.removeEventListener("abort", abort);
  }
}

/** Leaves the body unread. */
async function untouched(response: Response): Promise<Response> {
  return response;
}

/** Reads the whole body, so that a connection that breaks within it counts as broken. */
async function read(response: Response): Promise<Response> {
  if (response.status === 204) return response;
  const { status, statusText, headers } = response;
  return new Response(await response.arrayBuffer(), { status, statusText, headers });
}

async function errorOf(response: Response): Promise<PostriderError> {
  const text = await response.text();
  const { status, headers } = response;
  const retryAfter = Number(headers.get("retry-after") ?? Number.NaN);
  const requestId = headers.get("x-request-id") ?? undefined;
  const facts = { status, ...(requestId === undefined ? {} : { requestId }) };
  const waits = Number.isFinite(retryAfter) ? { retryAfter } : {};
  const error = errorIn(text);
  // A proxy before the service answers without the envelope.
  const type = status < 500 ? "invalid_request" : "service_unavailable";
  if (error === null)
    return new PostriderError(`${status} ${text.slice(0, MAX_TEXT_CHARS)}`, { type, ...facts, ...waits });
  return new PostriderError(error.message, { ...error, ...facts, ...waits });
}

function errorIn(text: string): (ErrorDetails & { message: string }) | null {
  try {
    const { error } = JSON.parse(text);
    return typeof error?.message === "string" && typeof error.type === "string" ? error : null;
  } catch {
    return null;
  }
}

/** Returns the milliseconds to wait before a request is repeated. Null: it is not repeated. */
function waitBefore(tries: number, { status, code, retryAfter }: PostriderError): number | null {
  const isBusy = status === 0 || status === 429 || status >= 500 || code === "idempotency_in_flight";
  if (!isBusy) return null;
  if (retryAfter !== undefined) return retryAfter > MAX_RETRY_AFTER_SECONDS ? null : retryAfter * 1000;
  // Between half and the whole of it, so that clients which failed together do not come back together.
  return Math.min(FIRST_WAIT_MS * 2 ** tries, LONGEST_WAIT_MS) * (0.5 + Math.random() / 2);
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
