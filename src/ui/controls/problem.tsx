import type { ApiError } from "../api/error.ts";
import { Advice } from "./advice.tsx";
import { CopyButton } from "./copy.tsx";

const NOT_FOUND = 404;

interface ProblemProps {
  error: ApiError | null;
  /** Tries again what failed. Not offered if the API knows no such thing (404). */
  onRetry?: (() => void) | undefined;
}

/** An error next to what failed, in the API's words, with the request id to copy. */
export function Problem({ error, onRetry }: ProblemProps) {
  if (error === null) return null;
  return (
    <div class="problem" role="alert">
      <p>
        <Advice text={error.message} />
      </p>
      <p class="problem-foot">
        {error.requestId === undefined ? null : (
          <span class="id">
            Request <code>{error.requestId}</code>
            <CopyButton text={error.requestId} what="request id" />
          </span>
        )}
        {onRetry === undefined || error.status === NOT_FOUND ? null : (
          <button type="button" class="button small" onClick={onRetry}>
            Try again
          </button>
        )}
      </p>
    </div>
  );
}
