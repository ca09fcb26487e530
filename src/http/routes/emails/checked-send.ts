import { type AppError, type Issue, validationError } from "../../../core/errors.ts";
import { type CheckedSend, checkSend, type SendLimits } from "../../../core/messages/send-rules.ts";

/** Checks a send by all rules. Throws 422 with every issue. */
export function checkedSend(body: unknown, limits: SendLimits, now: number, ownHeaders = 0): CheckedSend {
  const result = checkSend(body, limits, now, ownHeaders);
  if (isIssues(result)) throw validationError(result);
  return result;
}

function isIssues(result: CheckedSend | Issue[]): result is Issue[] {
  return Array.isArray(result);
}

/** Returns the refusal of one item, as batches show it. */
export function showRefusal({
  message,
  type,
  details: { code, param = "", resetAt },
}: AppError): Record<string, unknown> {
  return { error: { message, code: code ?? type, param, type, resetAt } };
}
