import type { AppError, ErrorCode } from "../../core/errors.ts";
import { type Reply, reply } from "../../smtp/session/reply.ts";

/** Errors that more than their type decides about. */
const BY_CODE: Partial<Record<ErrorCode, [code: number, enhanced: string]>> = {
  message_too_large: [552, "5.3.4"],
  daily_quota_exceeded: [452, "4.3.1"],
  trust_tier_exceeded: [452, "4.3.1"],
  quota_exceeded: [452, "4.3.1"],
};

/** Returns the reply to a message that the API would refuse with that error. */
export function refusalReply({ type, message, details: { code } }: AppError): Reply {
  const known = code === undefined ? undefined : BY_CODE[code];
  if (known !== undefined) return reply(...known, message);
  switch (type) {
    case "rate_limited":
      return reply(452, "4.3.1", message);
    case "service_unavailable":
      return reply(451, "4.3.0", message);
    case "permission_error":
    case "not_found":
      return reply(550, "5.7.1", message);
    default:
      return reply(550, "5.6.0", message);
  }
}
