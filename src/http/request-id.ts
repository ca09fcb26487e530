import { newId } from "../core/ids.ts";

/** Holds the id of a request, in it and in its answer. */
export const REQUEST_ID_HEADER = "x-request-id";

/** What of a client's own id is taken over: it goes into headers and logs as it is. */
const CLIENT_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** The client's own request id where it is a harmless one, else a new one of ours. */
export function requestIdOf(headers: Headers, now: number): string {
  const given = headers.get(REQUEST_ID_HEADER);
  return given !== null && CLIENT_ID.test(given) ? given : newId("req", now);
}
