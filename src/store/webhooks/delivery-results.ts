import { firstChars } from "../../core/text.ts";
import type { Statement } from "../engine/client.ts";
import type { WebhookDelivery } from "./webhook-deliveries.ts";

/** The fields of a delivery that an attempt sets. `dueAt`: the next try; null if the delivery is over. */
export interface DeliveryResult {
  status: "pending" | "succeeded" | "failed";
  dueAt: number | null;
  /** HTTP status of the response; null if there was none. */
  httpStatus: number | null;
  /** First bytes of the response's body. */
  response: string | null;
  error: string | null;
}

/**
 * Maximum number of attempts in the log of a delivery. Replays may make any number; the oldest are dropped.
 */
export const MAX_LOGGED_ATTEMPTS = 20;
/** Maximum characters of a response in the log. The delivery itself keeps more of the last one. */
const MAX_LOGGED_CHARS = 512;

/** Parameters: HTTP status, response, error of the attempt that ends. */
const WITH_ATTEMPT = `json_insert(
    CASE WHEN json_array_length(attempt_log) >= ${MAX_LOGGED_ATTEMPTS} THEN json_remove(attempt_log, '$[0]')
      ELSE COALESCE(attempt_log, '[]') END,
    '$[#]', json_object('at', last_attempt_at, 'httpStatus', ?, 'response', ?, 'error', ?))`;

/**
 * Returns the statement that ends a claim with the result of its attempt. It changes nothing if the claim no longer
 * holds. A claim still holds if another process freed it, having taken this one for dead, and no process has claimed
 * the delivery since. The response must be recorded then, or the endpoint gets the event twice.
 */
export function settleDelivery(
  delivery: WebhookDelivery,
  instanceId: string,
  result: DeliveryResult,
): Statement {
  return {
    sql: `UPDATE webhook_deliveries SET status = ?, due_at = ?, claimed_by = NULL, last_status = ?, last_response = ?,
        last_error = ?, attempt_log = ${WITH_ATTEMPT}
      WHERE id = ? AND (claimed_by = ? OR (claimed_by IS NULL AND due_at IS NOT NULL)) AND attempts = ?`,
    args: [
      result.status,
      result.dueAt,
      result.httpStatus,
      result.response,
      result.error,
      result.httpStatus,
      result.response === null ? null : firstChars(result.response, MAX_LOGGED_CHARS),
      result.error,
      delivery.id,
      instanceId,
      delivery.attempts,
    ],
  };
}
