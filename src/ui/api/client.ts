import { asApiError, errorOf } from "./error.ts";

/** Values of query parameters. Those that are null, undefined or empty are left out. */
export type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** Facts that every request needs, set by the session. */
interface Access {
  /** Id of the chosen project; null if the key implies it. */
  project: string | null;
  /** Called when the service says that the session has ended. */
  onSignedOut: () => void;
}

const access: Access = { project: null, onSignedOut: () => {} };

/** Sets the project that requests name, or the function to call when the session has ended. */
export function setAccess(changes: Partial<Access>): void {
  Object.assign(access, changes);
}

/** Returns a path with its query. */
export function withQuery(path: string, query: Query = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== null && value !== undefined && value !== "") params.set(name, String(value));
  const text = params.toString();
  return text === "" ? path : `${path}?${text}`;
}

/** Returns a path for frames, links and the stream. The browser loads them by itself, so the query names the project. */
export function browserPath(path: string, query: Query = {}): string {
  return withQuery(path, { ...query, project: access.project });
}

export interface Options {
  query?: Query | undefined;
  body?: unknown;
  /** A body that is no JSON, with its type. */
  file?: Blob | undefined;
  /** Content type of the answer, if it is not JSON. */
  accept?: string;
  signal?: AbortSignal | undefined;
  /** Account-level requests name no project. */
  account?: boolean;
  /** Id of a project other than the chosen one. */
  project?: string;
  /** Lets the request end although its page is closed. Its body must be small. */
  keepalive?: boolean;
  /** Repeating a request with the same key has no further effect. */
  idempotencyKey?: string;
}

function headersOf({
  body,
  file,
  accept = "application/json",
  account,
  project,
  idempotencyKey,
}: Options): Record<string, string> {
  const named = account === true ? null : (project ?? access.project);
  return {
    accept,
    "X-Postrider-UI": "1",
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    ...(file === undefined ? {} : { "content-type": file.type }),
    ...(named === null ? {} : { "X-Service-Product": named }),
    ...(idempotencyKey === undefined ? {} : { "Idempotency-Key": idempotencyKey }),
  };
}

/** While the server draws a page, the only answers available. */
let known: Readonly<Record<string, unknown>> | null = null;

/** Sets the answers from which the server draws a page. */
export function setKnownAnswers(answers: Readonly<Record<string, unknown>>): void {
  known = answers;
}

/** Returns whether the server draws the page. */
export function isDrawn(): boolean {
  return known !== null;
}

/** Thrown while the server draws a page, for an answer that it does not have. The browser requests it. */
export class NotKnown extends Error {}

/** Sends a request and returns the response. @throws ApiError for a status of 400 or more, or if there is no answer */
export async function send(method: string, path: string, options: Options = {}): Promise<Response> {
  if (isDrawn()) throw new NotKnown();
  const { query, body, file, signal, keepalive = false } = options;
  let response: Response;
  try {
    response = await fetch(withQuery(path, query), {
      method,
      headers: headersOf(options),
      credentials: "same-origin",
      cache: "no-store",
      keepalive,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(file === undefined ? {} : { body: file }),
      ...(signal === undefined ? {} : { signal }),
    });
  } catch (thrown) {
    if (signal?.aborted === true) throw thrown;
    throw asApiError(thrown);
  }
  if (response.ok) return response;
  const error = await errorOf(response);
  if (response.status === 401 && path !== "/ui/session") access.onSignedOut();
  throw error;
}

async function json<Answer>(method: string, path: string, options?: Options): Promise<Answer> {
  const response = await send(method, path, options);
  return (response.status === 204 ? undefined : await response.json()) as Answer;
}

/** Reads JSON. */
export async function get<Answer>(path: string, query?: Query, options: Options = {}): Promise<Answer> {
  if (known === null) return json("GET", path, { ...options, query });
  const answer = known[withQuery(path, query)];
  if (answer === undefined) throw new NotKnown();
  return answer as Answer;
}

/** Posts JSON. The key makes it safe to post the same again after a broken connection. */
export function post<Answer>(path: string, body?: unknown, options: Options = {}): Promise<Answer> {
  return json("POST", path, { ...options, body });
}

/** Replaces a resource. */
export function put<Answer>(path: string, body: unknown, options: Options = {}): Promise<Answer> {
  return json("PUT", path, { ...options, body });
}

/** Changes a resource. */
export function patch<Answer>(path: string, body: unknown, options: Options = {}): Promise<Answer> {
  return json("PATCH", path, { ...options, body });
}

/** Deletes a resource. */
export function remove(path: string, query?: Query, options: Options = {}): Promise<void> {
  return json("DELETE", path, { ...options, query });
}
