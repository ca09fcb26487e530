import { AppError } from "../core/errors.ts";
import { overQuota, type QuotaLimits } from "../core/quotas.ts";
import { isBroken } from "../store/engine/guards.ts";
import { overQuotaIn } from "../store/projects/holdings.ts";

/** Makes a handler that throws the error of a write as the client sees it: 403 `quota_exceeded` if a quota undid it. */
export function quotaExceeded(limits: QuotaLimits): (error: unknown) => never {
  return (error) => {
    const resource = overQuotaIn(error);
    throw resource === null ? error : overQuota(resource, limits[resource]);
  };
}

/**
 * Makes a handler that throws the error of a write as the client sees it: 403 `quota_exceeded` if the guard `too_many_records` undid
 * it.
 * @param message the maximum as a sentence
 * @param param name of the records
 */
export function tooManyRecords(message: string, param: string): (error: unknown) => never {
  return (error) => {
    if (!isBroken(error, "too_many_records")) throw error;
    throw new AppError("permission_error", message, { code: "quota_exceeded", param });
  };
}
