import type { AppError } from "../../../core/errors.ts";

/** Returns the refusal of one item, as batches show it. */
export function showRefusal({
  message,
  type,
  details: { code, param = "", resetAt },
}: AppError): Record<string, unknown> {
  return { error: { message, code: code ?? type, param, type, resetAt } };
}
