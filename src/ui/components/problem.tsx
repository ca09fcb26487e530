import type { ApiError } from "../api/error.ts";
import { CopyButton } from "./copy.tsx";

interface ProblemProps {
  error: ApiError | null;
  /** Tries again what failed. */
  onRetry?: (() => void) | undefined;
}

/** An error next to what failed, in the API's words, with the request id to copy. */
export function Problem({ error, onRetry }: ProblemProps) {
  if (error === null) return null;
  return (
    <div class="problem" role="alert">
      <p>{error.message}</p>
      <p class="problem-foot">
        {error.requestId === undefined ? null : (
          <span class="id">
            Request <code>{error.requestId}</code>
            <CopyButton text={error.requestId} what="request id" />
          </span>
        )}
        {onRetry === undefined ? null : (
          <button type="button" class="button small" onClick={onRetry}>
            Try again
          </button>
        )}
      </p>
    </div>
  );
}
