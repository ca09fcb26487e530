import { log } from "../log.ts";
import type { AnsweredRequest } from "./server.ts";

/**
 * One line a request. The path stands there as in the route table, for ids and tokens of links are in the real one.
 * Refusals are debug like answers: whoever is refused can ask as often as he likes, and would fill the disk.
 */
export function logAnswer({ requestId, method, route, status, durationMs }: AnsweredRequest): void {
  const line = { requestId, method, route, status, ms: durationMs };
  if (status >= 500) log("http").info("answered", line);
  else log("http").debug("answered", line);
}

/** The messages that a request has handed over: what joins its id, which the client is told, to theirs. */
export function logAccepted(requestId: string, messages: readonly string[]): void {
  if (messages.length > 0) log("http").debug("mail accepted", { requestId, messages });
}
