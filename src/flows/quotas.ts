import { overQuota, type QuotaLimits } from "../core/quotas.ts";
import { overQuotaIn } from "../store/projects/holdings.ts";

/** Makes a handler that throws the error of a write as the client sees it: 403 `quota_exceeded` if a quota undid it. */
export function quotaExceeded(limits: QuotaLimits): (error: unknown) => never {
  return (error) => {
    const resource = overQuotaIn(error);
    throw resource === null ? error : overQuota(resource, limits[resource]);
  };
}
