import type { components } from "../../../sdk/src/api.ts";
import { isObject } from "../../core/validation.ts";
import type { Clock } from "../../core/time/clock.ts";
import { exchangeDirect } from "./direct-fetch.ts";
import { refused, unavailable, usage } from "./exit.ts";

/** The bodies of the API, by the names of its reference. */
export type Schemas = components["schemas"];

/** Time for one request and its answer. */
const REQUEST_TIMEOUT_MS = 30_000;
/** Largest answer that is read, bytes. The record of a message with its bodies is far smaller. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

export interface Api {
  /** Without a slash at the end. */
  url: string;
  /** Header fields that show who asks. */
  headers: Readonly<Record<string, string>>;
  /** Project for which an account-wide key acts. */
  sender: string | undefined;
}

/**
 * Sends one request to a running service, and returns the body of a 2xx answer.
 * @throws CommandError unavailable if the service cannot be reached or is busy, else refused with the service's own
 * words
 */
export async function callApi<Body = Record<string, unknown>>(
  clock: Clock,
  api: Api,
  method: "GET" | "POST" | "PATCH",
  path: string,
  body?: Readonly<Record<string, unknown>>,
): Promise<Body> {
  const { status, text } = await requestApi(clock, api, { method, path, body });
  return bodyOf(api, status, text) as Body;
}

/** A request to a running service. */
export interface ApiRequest {
  method: "GET" | "POST" | "PATCH";
  path: string;
  body?: Readonly<Record<string, unknown>> | undefined;
  /** Sent as the Idempotency-Key. */
  idempotencyKey?: string;
  /** Time for the request and its answer. */
  timeoutMs?: number;
}

/**
 * Sends one request to a running service, and returns its answer, whatever it is.
 * @throws CommandError unavailable if the service cannot be reached
 */
export async function requestApi(
  clock: Clock,
  api: Api,
  request: ApiRequest,
): Promise<{ status: number; text: string }> {
  const { method, path, body, timeoutMs = REQUEST_TIMEOUT_MS } = request;
  const outcome = await exchangeDirect(clock, new URL(`${api.url}${path}`), {
    method,
    headers: requestHeaders(api, request),
    body: body === undefined ? undefined : JSON.stringify(body),
    timeoutMs,
    maxBytes: MAX_ANSWER_BYTES + 1,
  });
  if (outcome.kind === "failed")
    throw unavailable(
      `${api.url} cannot be reached (${outcome.reason}). Is the service running, and is this its address? Set PORT as for the service, or give --url and a key.`,
    );
  if (outcome.body.length > MAX_ANSWER_BYTES)
    throw unavailable(`the answer is longer than ${MAX_ANSWER_BYTES} bytes`);
  return { status: outcome.status, text: outcome.body.toString("utf8") };
}

/** Returns the header fields that identify the caller and its project. */
export function apiHeaders({ headers, sender }: Pick<Api, "headers" | "sender">): Record<string, string> {
  // A line break in the key would begin another header field (header injection).
  if (sender !== undefined && !/^[\x21-\x7e]+$/.test(sender)) throw usage("--sender is no id of a project");
  return {
    ...headers,
    ...(sender === undefined ? {} : { "X-Service-Product": sender }),
  };
}

function requestHeaders(api: Api, { body, idempotencyKey }: ApiRequest): Record<string, string> {
  if (idempotencyKey !== undefined && !/^[\x20-\x7e]+$/.test(idempotencyKey))
    throw usage("an idempotency key has printable characters only");
  return {
    ...apiHeaders(api),
    ...(idempotencyKey === undefined ? {} : { "Idempotency-Key": idempotencyKey }),
    ...(body === undefined ? {} : { "Content-Type": "application/json" }),
  };
}

/** Returns the body of a 2xx answer. @throws CommandError as `callApi` */
export function bodyOf({ url }: Api, status: number, text: string): Record<string, unknown> {
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
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}
