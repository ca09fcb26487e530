import { log } from "../../log.ts";
import { newId } from "../../core/ids.ts";

/** An answered request, for metrics and the access log. */
export interface AnsweredRequest {
  requestId: string;
  method: string;
  /** The route's path with its `:name` segments, which keeps the set of labels small. */
  route: string;
  status: number;
  durationMs: number;
}
/** Header with the id of a request, in the request and its answer. */
export const REQUEST_ID_HEADER = "x-request-id";

/** Ids of clients that are accepted. They are put into headers and logs unchanged. */
const CLIENT_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** Returns the client's own request id if it is harmless, else a new one. */
export function requestIdOf(headers: Headers, now: number): string {
  const given = headers.get(REQUEST_ID_HEADER);
  return given !== null && CLIENT_ID.test(given) ? given : newId("req", now);
}

/**
 * Logs one line per request. It shows the path of the route table, because the real path may contain ids and tokens.
 * Refusals are logged as debug, because a refused client can repeat its request and fill the disk.
 */
export function logAnswer({ requestId, method, route, status, durationMs }: AnsweredRequest): void {
  const line = { requestId, method, route, status, ms: durationMs };
  if (status >= 500) log("http").info("answered", line);
  else log("http").debug("answered", line);
}

/** Logs the messages of a request, which connects its id with theirs. */
export function logAccepted(requestId: string, messages: readonly string[]): void {
  if (messages.length > 0) log("http").debug("mail accepted", { requestId, messages });
}
