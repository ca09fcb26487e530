import type { components } from "./api.ts";
type ApiError = components["schemas"]["Error"]["error"];
/** A type of the API, or `connection_error` or `timeout` if there was no answer. */
export type ErrorType = ApiError["type"] | "connection_error" | "timeout";
/** Facts about an error, besides its message. */
export interface ErrorDetails extends Partial<Omit<ApiError, "type" | "message">> {
    type: ErrorType;
    /** HTTP status. 0: there was no answer. */
    status: number;
    /** Seconds after which to try again, if the service says so. */
    retryAfter?: number;
    cause?: unknown;
}
/** The service refused a request, or could not be reached. */
export declare class PostriderError extends Error {
    readonly name = "PostriderError";
    /** HTTP status. 0: there was no answer. */
    readonly status: number;
    readonly type: ErrorType;
    /** The cause, for programs: `domain_not_verified`. */
    readonly code: ApiError["code"];
    /** Path of the field at fault: `to[0].email`. */
    readonly param: string | undefined;
    /** Every field at fault. Empty if the error is about no field. */
    readonly issues: NonNullable<ApiError["issues"]>;
    /** The id under which the service has logged the request. */
    readonly requestId: string | undefined;
    /** When a used-up quota is available again, ISO 8601. */
    readonly resetAt: string | undefined;
    /** Seconds after which to try again, if the service says so. */
    readonly retryAfter: number | undefined;
    constructor(message: string, details: ErrorDetails);
}
export {};
