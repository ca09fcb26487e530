/** Error types of the API's envelope with the status each is answered with. */
export const ERROR_STATUS = {
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
} as const;

export type ErrorType = keyof typeof ERROR_STATUS;

/** `code` values: what went wrong, for programs. A batch item's error uses the same. */
export type ErrorCode =
  | "missing_field"
  | "invalid_email"
  | "invalid_from"
  | "domain_not_verified"
  | "test_mode_recipient"
  | "template_not_found"
  | "rendering_failure"
  | "too_many_recipients"
  | "message_too_large"
  | "invalid_attachment"
  | "invalid_header"
  | "schedule_out_of_range"
  | "daily_quota_exceeded"
  | "trust_tier_exceeded"
  | "sender_suspended"
  | "missing_scope"
  | "idempotency_mismatch"
  | "idempotency_in_flight"
  | "duplicate"
  | "invalid_state"
  | "internal_error";

/** One fault of a request: `param` is a JSON path such as `to[0].email`. */
export interface Issue {
  message: string;
  param: string;
  code?: ErrorCode;
}

/** What an error tells beside its message; each where there is something to tell. */
export interface ErrorDetails {
  code?: ErrorCode;
  param?: string;
  issues?: Issue[];
  /** ISO time at which a used-up quota starts anew. */
  resetAt?: string;
  /** Seconds for a `Retry-After` header. */
  retryAfter?: number;
  /** Methods for an `Allow` header. */
  allow?: string[];
}

/** The caller's fault. Thrown anywhere, mapped once per door: to the JSON envelope in HTTP. */
export class AppError extends Error {
  readonly type: ErrorType;
  readonly details: ErrorDetails;

  constructor(type: ErrorType, message: string, details: ErrorDetails = {}) {
    super(message);
    this.name = "AppError";
    this.type = type;
    this.details = details;
  }

  get status(): number {
    return ERROR_STATUS[this.type];
  }
}

/**
 * The operator's fault: a setting, or what it leads to, is not what the service can run with. It does not mend itself, so whoever
 * starts the service is told by an exit code of its own.
 */
export class SettingsError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "SettingsError";
  }
}

/** 404 for an id that does not exist or is not visible to the caller: the two answer alike. */
export function notFound(what: string): AppError {
  return new AppError("not_found", `No such ${what}.`);
}

/** 422 over all issues; the first one gives the message, `param` and `code`. */
export function validationError(issues: Issue[]): AppError {
  const first = issues[0] ?? { message: "Invalid.", param: "" };
  const where = first.param === "" ? "body" : first.param;
  return new AppError("validation_error", `${where}: ${first.message}`, {
    param: first.param,
    issues,
    ...(first.code ? { code: first.code } : {}),
  });
}

/** 422 for one field. */
export function invalid(param: string, message: string, code?: ErrorCode): AppError {
  return validationError([code ? { message, param, code } : { message, param }]);
}

/**
 * The results of all readings, each of which may throw a 422 of its own. Throws one 422 over the issues of all that do: a
 * client is told everything that is wrong at once.
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

/** What went wrong in one word or sentence: the error's code (`ECONNREFUSED`) where it has one, else its message. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  return "code" in error && typeof error.code === "string" ? error.code : error.message;
}
