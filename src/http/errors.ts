import { AppError } from "../core/errors.ts";
import { log } from "../log.ts";
import { isUnavailable } from "../store/engine/unavailable.ts";
import type { Answer } from "./answer.ts";

/** What went wrong, in the API's terms. What is no `AppError` is ours: its own words stay in the log. */
function appErrorOf(error: unknown, requestId: string): AppError {
  if (error instanceof AppError) return error;
  const details = {
    requestId,
    error: error instanceof Error ? (error.stack ?? error.message) : String(error),
  };
  if (isUnavailable(error)) {
    log("http").error("the database or the object store is unavailable", details);
    return new AppError("service_unavailable", "The service cannot answer just now. Try again.", {
      retryAfter: 1,
    });
  }
  log("http").error("request failed", details);
  return new AppError("internal_error", "Something went wrong on our side.", { code: "internal_error" });
}

function headersOf({ type, details }: AppError): Record<string, string> {
  const headers: Record<string, string> = {};
  // RFC 9110 §11.6.1: a 401 names the scheme it asks for.
  if (type === "authentication_error") headers["www-authenticate"] = "Bearer";
  // RFC 9110 §15.5.6: a 405 names the methods there are.
  if (details.allow !== undefined) headers.allow = details.allow.join(", ");
  // RFC 9110 §15.5.9: nothing more is read of a request that has not come in its time, so there is none behind it.
  if (type === "request_timeout") headers.connection = "close";
  if (details.retryAfter !== undefined) headers["retry-after"] = String(details.retryAfter);
  return headers;
}

/** The error envelope for anything thrown. Logs what is not the caller's fault. */
export function errorAnswer(thrown: unknown, requestId: string): Answer {
  const error = appErrorOf(thrown, requestId);
  const { code, param, issues, resetAt } = error.details;
  const body = {
    error: { type: error.type, message: error.message, code, param, issues, resetAt, requestId },
  };
  return { status: error.status, body, headers: headersOf(error) };
}
