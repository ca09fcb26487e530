import { type GuardedDeps, type GuardedRequest, requestGuarded } from "./guarded-request.ts";
import type { HttpResponse } from "./http-response.ts";

/** A `Retry-After` beyond this is shortened: RFC 9110 §10.2.3 sets no bound. */
export const MAX_RETRY_AFTER_SECONDS = 86_400;

export type PostDeps = GuardedDeps;

export interface PostRequest extends Omit<GuardedRequest, "body" | "maxBodyOctets"> {
  body: string | Uint8Array;
}

export type PostOutcome =
  | {
      kind: "answered";
      status: number;
      /** The first 4 KiB of the answer. */
      body: Uint8Array;
      retryAfterSeconds?: number;
    }
  | { kind: "failed"; reason: string };

/** Posts to a URL that a customer chose; the first 4 KiB of the answer are read. Never throws. */
export async function post(deps: PostDeps, request: PostRequest): Promise<PostOutcome> {
  const outcome = await requestGuarded(deps, request);
  return outcome.kind === "answered" ? answered(deps, outcome.response) : outcome;
}

function answered(deps: PostDeps, response: HttpResponse): PostOutcome {
  const retryAfterSeconds = parseRetryAfter(response.headers.get("retry-after"), deps.clock.now());
  const { status, body } = response;
  return { kind: "answered", status, body, ...(retryAfterSeconds === null ? {} : { retryAfterSeconds }) };
}

/** RFC 9110 §10.2.3: seconds, or a date; null where it is neither. */
export function parseRetryAfter(text: string | undefined, now: number): number | null {
  if (text === undefined) return null;
  const seconds = /^\d+$/.test(text) ? Number(text) : Math.ceil((httpDate(text) - now) / 1000);
  return Number.isNaN(seconds) ? null : Math.min(Math.max(seconds, 0), MAX_RETRY_AFTER_SECONDS);
}

/** RFC 9110 §5.6.7: all dates are in GMT, though its third form, that of asctime, does not say so. */
function httpDate(text: string): number {
  if (!/^[A-Z][a-z]{2,8},? /.test(text)) return Number.NaN;
  return Date.parse(text.endsWith(" GMT") ? text : `${text} GMT`);
}
