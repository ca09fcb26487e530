import type { Clock } from "../core/clock.ts";
import { refused, unavailable } from "./exit.ts";
import { readAll } from "./input.ts";

/** Time for one request and its answer. */
const REQUEST_TIMEOUT_MS = 30_000;
/** Bytes of an answer that are read: a message's record with its bodies has far fewer. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

export interface Api {
  /** Without a slash at its end. */
  url: string;
  key: string;
  /** Project that an account-wide key acts for. */
  sender: string | undefined;
}

/**
 * One request to a running service; gives the body of a 2xx answer.
 * @throws CommandError: unavailable where it cannot be reached or cannot do it now, refused with its own words else
 */
export async function callApi(
  clock: Clock,
  api: Api,
  method: "GET" | "POST",
  path: string,
  body?: Readonly<Record<string, unknown>>,
): Promise<Record<string, unknown>> {
  const abort = new AbortController();
  const cancel = clock.after(REQUEST_TIMEOUT_MS, () => abort.abort());
  try {
    const answer = await reach(api, path, {
      method,
      signal: abort.signal,
      // The key goes to the address given and is carried nowhere else.
      redirect: "manual",
      headers: {
        authorization: `Bearer ${api.key}`,
        ...(api.sender === undefined ? {} : { "x-service-product": api.sender }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = answer.body === null ? "" : await readAll(answer.body, MAX_ANSWER_BYTES, "the answer");
    return bodyOf(api, answer.status, text);
  } finally {
    cancel();
  }
}

async function reach({ url }: Api, path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(`${url}${path}`, init);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw unavailable(
      `${url} cannot be reached (${why}): is the service running, and is this its address (--url)?`,
    );
  }
}

function bodyOf({ url }: Api, status: number, text: string): Record<string, unknown> {
  const body = objectIn(text);
  if (status >= 200 && status < 300 && body !== null) return body;
  const error = body !== null && typeof body.error === "object" ? body.error : null;
  if (error === null) throw unavailable(`${url} answers ${status}, and not as this service does (--url)`);
  const { message, code, param } = error as { message?: unknown; code?: unknown; param?: unknown };
  const details = [status, code, param]
    .filter((detail) => detail !== undefined && detail !== null)
    .join(", ");
  const said = `${String(message)} (${details})`;
  throw status === 429 || status >= 500 ? unavailable(said) : refused(said);
}

function objectIn(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
