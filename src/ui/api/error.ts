/** One problem with a request, as the API names it. */
export interface Issue {
  message: string;
  /** JSON path such as `to[0].email`. Empty: the whole body. */
  param: string;
  code?: string;
}

interface Facts {
  status: number;
  type: string;
  code?: string | undefined;
  param?: string | undefined;
  issues?: Issue[] | undefined;
  requestId?: string | undefined;
  resetAt?: string | undefined;
}

/** A refusal of the API, or a request that got no answer (status 0). */
export class ApiError extends Error {
  readonly status: number;
  readonly type: string;
  readonly code: string | undefined;
  readonly issues: readonly Issue[];
  readonly requestId: string | undefined;

  constructor(message: string, { status, type, code, param, issues, requestId }: Facts) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.type = type;
    this.code = code;
    this.issues = issues ?? (param === undefined ? [] : [{ message, param, ...(code ? { code } : {}) }]);
    this.requestId = requestId;
  }
}

/** Returns the error in an answer with a status of 400 or more. */
export async function errorOf(response: Response): Promise<ApiError> {
  const requestId = response.headers.get("x-request-id") ?? undefined;
  const body = (await response.json().catch(() => null)) as {
    error?: Partial<Facts & { message: string }>;
  } | null;
  const error = body?.error;
  if (error?.message === undefined)
    return new ApiError(`The service answered ${response.status} without a reason.`, {
      status: response.status,
      type: "internal_error",
      requestId,
    });
  return new ApiError(error.message, {
    ...error,
    type: error.type ?? "internal_error",
    status: response.status,
    requestId: error.requestId ?? requestId,
  });
}

/** Returns anything thrown as an ApiError. `fetch` throws a TypeError if there is no answer. */
export function asApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  return new ApiError("The service did not answer. It may be restarting, or the network is down.", {
    status: 0,
    type: "no_answer",
  });
}

/** Returns the issues of a form's field: those of the field itself and of what it contains. */
export function issuesOf(error: ApiError | null, field: string): Issue[] {
  if (error === null) return [];
  return error.issues.filter(({ param }) => param === field || startsWithPart(param, field));
}

/** Returns the error without the issues of a form's field; null if there are no others. */
export function withoutIssuesOf(error: ApiError | null, field: string): ApiError | null {
  if (error === null) return null;
  const gone = issuesOf(error, field);
  const issues = error.issues.filter((issue) => !gone.includes(issue));
  return issues.length === 0 ? null : new ApiError(error.message, { ...error, issues });
}

function startsWithPart(param: string, field: string): boolean {
  return param.startsWith(`${field}.`) || param.startsWith(`${field}[`);
}
