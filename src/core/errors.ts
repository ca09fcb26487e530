/** Kinds of error that a client can get. HTTP maps each to a status. */
export const ERROR_TYPES = [
  "invalid_request",
  "authentication_error",
  "permission_error",
  "not_found",
  "method_not_allowed",
  "request_timeout",
  "conflict",
  "payload_too_large",
  "validation_error",
  "rate_limited",
  "internal_error",
  "service_unavailable",
] as const;
export type ErrorType = (typeof ERROR_TYPES)[number];

/** Values of `code`. They tell programs what went wrong. Errors of batch items use them too. */
export const ERROR_CODES = [
  "missing_field",
  "invalid_email",
  "invalid_from",
  "domain_not_verified",
  "test_mode_recipient",
  "template_not_found",
  "rendering_failure",
  "too_many_recipients",
  "message_too_large",
  "invalid_attachment",
  "invalid_item",
  "unknown_field",
  "invalid_header",
  "schedule_out_of_range",
  "daily_quota_exceeded",
  "trust_tier_exceeded",
  "quota_exceeded",
  "recipient_not_allowed",
  "sender_suspended",
  "missing_scope",
  "idempotency_mismatch",
  "idempotency_in_flight",
  "duplicate",
  "invalid_state",
  "internal_error",
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/** One problem with a request. */
export interface Issue {
  /** A sentence. If it begins in lower case (`must be a string.`), the name of the field is put before it. */
  message: string;
  /** JSON path such as `to[0].email`. Empty: the whole body. */
  param: string;
  code?: ErrorCode;
}

/** Returns the issue with its message as a whole sentence: `"limit" must be a whole number.` */
export function withSentence(issue: Issue): Issue {
  const { message, param } = issue;
  if (!/^[a-z]/.test(message)) return issue;
  return { ...issue, message: `${param === "" ? "The body" : `"${param}"`} ${message}` };
}

/** Optional facts about an error, besides its message. */
export interface ErrorDetails {
  code?: ErrorCode;
  param?: string;
  issues?: Issue[];
  /** ISO time at which a used-up quota is available again. */
  resetAt?: string;
  /** After this time the client may try again. */
  retryAfterSeconds?: number;
}

/** An error that the client sees, because its request caused it. `http/routing/errors` turns it into a response. */
export class AppError extends Error {
  readonly type: ErrorType;
  readonly details: ErrorDetails;

  constructor(type: ErrorType, message: string, details: ErrorDetails = {}) {
    super(message);
    this.name = "AppError";
    this.type = type;
    this.details = details;
  }
}

/**
 * A setting with which the service cannot run. A restart does not help until the operator changes it, so the
 * process ends with a separate exit code.
 */
export class SettingsError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "SettingsError";
  }
}

/** Returns the 404 for an id. The answer does not tell an unknown id from one of another project. */
export function notFound(what: string): AppError {
  return new AppError("not_found", `No such ${what}.`);
}

/** Returns the result of a lookup. @throws AppError 404 if it is null */
export function existing<Thing>(what: string, thing: Thing | null): Thing {
  if (thing === null) throw notFound(what);
  return thing;
}

/** Returns the 422 for all issues. The first one gives the message, `param` and `code`. */
export function validationError(found: readonly Issue[]): AppError {
  const issues = found.map(withSentence);
  const { message, param, code } = issues[0] ?? { message: "The request is not valid.", param: "" };
  const namesField = param === "" || message.startsWith(`"${param}"`);
  return new AppError("validation_error", namesField ? message : `${param}: ${message}`, {
    param,
    issues,
    ...(code === undefined ? {} : { code }),
  });
}

/** Returns the 422 for one field. */
export function invalid(param: string, message: string, code?: ErrorCode): AppError {
  return validationError([code ? { message, param, code } : { message, param }]);
}

/**
 * Runs all readers and returns their results. If some throw a 422, throws one 422 with the issues of all, so that the client
 * sees every fault at once.
 */
export function readAll<Results extends readonly unknown[]>(
  ...readings: { [Index in keyof Results]: () => Results[Index] }
): Results {
  const issues: Issue[] = [];
  const results = readings.map((read) => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof AppError) || error.type !== "validation_error") throw error;
      issues.push(...(error.details.issues ?? []));
      return undefined;
    }
  });
  if (issues.length > 0) throw validationError(issues);
  return results as unknown as Results;
}

/** Returns the error's code (`ECONNREFUSED`) if it has one, else its message. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  return "code" in error && typeof error.code === "string" ? error.code : error.message;
}
