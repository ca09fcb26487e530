import type { AppError, ErrorCode, ErrorType } from "../../../core/errors.ts";
import { UnnamedProject } from "../../access/project.ts";
import type { Answer } from "../../routing/answer.ts";
import { inTheirWords } from "./field-names.ts";
import { appErrorOf, errorAnswer } from "../../routing/errors.ts";

const NAME_OF_TYPE: Readonly<Record<ErrorType, string>> = {
  invalid_request: "validation_error",
  authentication_error: "validation_error",
  permission_error: "validation_error",
  not_found: "not_found",
  method_not_allowed: "method_not_allowed",
  request_timeout: "application_error",
  conflict: "validation_error",
  payload_too_large: "validation_error",
  validation_error: "validation_error",
  rate_limited: "rate_limit_exceeded",
  internal_error: "internal_server_error",
  service_unavailable: "application_error",
};

/** Resend's name for codes that have one. */
const NAME_OF_CODE: Partial<Readonly<Record<ErrorCode, string>>> = {
  missing_field: "missing_required_field",
  invalid_attachment: "invalid_attachment",
  invalid_from: "invalid_from_address",
  daily_quota_exceeded: "daily_quota_exceeded",
  trust_tier_exceeded: "daily_quota_exceeded",
  idempotency_mismatch: "invalid_idempotent_request",
  idempotency_in_flight: "concurrent_idempotent_requests",
  missing_scope: "restricted_api_key",
};

/** Statuses that differ from those of `/v1`. Resend answers 429 to a used-up quota and 401 to a restricted key. */
const STATUS_OF_NAME: Readonly<Record<string, number>> = {
  daily_quota_exceeded: 429,
  restricted_api_key: 401,
};

/** Says what to do to a person whose SDK sends an account-wide key: it has no way to name a project. */
const NEEDS_PROJECT_KEY =
  "This is an account-wide key, which acts for no project by itself. Give the SDK a project's key: make one in the dashboard under Keys, or with `postrider keys create --name NAME --sender PROJECT`. A client that can set headers may name the project in X-Service-Product.";

/** Returns Resend's error envelope for anything thrown: `{statusCode, name, message}`. */
export function resendErrorAnswer(thrown: unknown, requestId: string, hasKey: boolean): Answer {
  const error = appErrorOf(thrown, requestId);
  const answer = errorAnswer(error, requestId);
  const name = nameOf(error, hasKey);
  const statusCode = STATUS_OF_NAME[name] ?? answer.status;
  const body = { statusCode, name, message: messageOf(error) };
  return { ...answer, status: statusCode, body };
}

function messageOf(error: AppError): string {
  if (error instanceof UnnamedProject) return NEEDS_PROJECT_KEY;
  // A field that is not ours is named as the client sent it.
  return error.details.code === "unknown_field"
    ? error.message
    : inTheirWords(error.message, error.details.param);
}

function nameOf({ type, details: { code, param } }: ReturnType<typeof appErrorOf>, hasKey: boolean): string {
  if (type === "authentication_error" && !hasKey) return "missing_api_key";
  if (param === "Idempotency-Key") return "invalid_idempotency_key";
  return (code === undefined ? undefined : NAME_OF_CODE[code]) ?? NAME_OF_TYPE[type];
}
