import { AppError, type ErrorType } from "../../core/errors.ts";
import { log } from "../../log.ts";
import { isUnavailable } from "../../store/sql/errors.ts";
import type { Answer } from "./answer.ts";

export const ERROR_STATUS: Readonly<Record<ErrorType, number>> = {
  invalid_request: 400,
  authentication_error: 401,
  permission_error: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  conflict: 409,
  payload_too_large: 413,
  validation_error: 422,
  rate_limited: 429,
  internal_error: 500,
  service_unavailable: 503,
};

/** A 405 with the methods that the path takes, for the `Allow` header (RFC 9110 §15.5.6). */
export class MethodNotAllowed extends AppError {
  readonly allow: readonly string[];

  constructor(method: string, allow: readonly string[]) {
    super("method_not_allowed", `This path does not take ${method}. It takes ${allow.join(", ")}.`);
    this.allow = allow;
  }
}

/** Returns the error that the client sees. The words of an unexpected error stay in the log. */
export function appErrorOf(error: unknown, requestId: string): AppError {
  if (error instanceof AppError) return error;
  const details = {
    requestId,
    error: error instanceof Error ? (error.stack ?? error.message) : String(error),
  };
  if (isUnavailable(error)) {
    log("http").error("the database or the object store is unavailable", details);
    return new AppError("service_unavailable", "The service cannot answer just now. Try again.", {
      retryAfterSeconds: 1,
    });
  }
  log("http").error("request failed", details);
  return new AppError("internal_error", "Something went wrong on our side.", { code: "internal_error" });
}

function headersOf(error: AppError): Record<string, string> {
  const { retryAfterSeconds } = error.details;
  const headers: Record<string, string> = {};
  // RFC 9110 §11.6.1: a 401 names the scheme it asks for.
  if (error.type === "authentication_error") headers["www-authenticate"] = "Bearer";
  if (error instanceof MethodNotAllowed) headers.allow = error.allow.join(", ");
  // RFC 9110 §15.5.9: the rest of a request that came too slowly is not read, so the connection cannot carry another one.
  if (error.type === "request_timeout") headers.connection = "close";
  if (retryAfterSeconds !== undefined) headers["retry-after"] = String(retryAfterSeconds);
  return headers;
}

/** Returns the error envelope for anything thrown. Logs errors that the client did not cause. */
export function errorAnswer(thrown: unknown, requestId: string): Answer {
  const error = appErrorOf(thrown, requestId);
  const { code, param, issues, resetAt } = error.details;
  const body = {
    error: { type: error.type, message: error.message, code, param, issues, resetAt, requestId },
  };
  return { status: ERROR_STATUS[error.type], body, headers: headersOf(error) };
}
