import { type GuardedDeps, type GuardedRequest, requestGuarded } from "./guarded-request.ts";
import type { HttpResponse } from "./http-response.ts";

/** Maximum `Retry-After`: RFC 9110 §10.2.3 has none, so longer ones are shortened. */
export const MAX_RETRY_AFTER_SECONDS = 86_400;

export type PostDeps = GuardedDeps;

export interface PostRequest extends Omit<GuardedRequest, "headers" | "body" | "maxBodyOctets"> {
  headers: Readonly<Record<string, string>>;
  /** In pieces, so that pieces shared by many requests are not copied. */
  body: readonly Uint8Array[];
}

export type PostOutcome =
  | {
      kind: "answered";
      status: number;
      /** The first 4 KiB of the response. */
      body: Uint8Array;
      retryAfterSeconds?: number;
    }
  | { kind: "failed"; reason: string };

/** Posts to a URL that a customer chose, and reads the first 4 KiB of the response. Never throws. */
export async function post(deps: PostDeps, request: PostRequest): Promise<PostOutcome> {
  const outcome = await requestGuarded(deps, request);
  return outcome.kind === "answered" ? answered(deps, outcome.response) : outcome;
}

function answered(deps: PostDeps, response: HttpResponse): PostOutcome {
  const retryAfterSeconds = parseRetryAfter(response.headers.get("retry-after"), deps.clock.now());
  const { status, body } = response;
  return { kind: "answered", status, body, ...(retryAfterSeconds === null ? {} : { retryAfterSeconds }) };
}

/** RFC 9110 §10.2.3: parses seconds or a date, and shortens it to `most` seconds. Returns null if it is neither. */
export function parseRetryAfter(
  text: string | undefined,
  now: number,
  most = MAX_RETRY_AFTER_SECONDS,
): number | null {
  if (text === undefined) return null;
  const seconds = /^\d+$/.test(text) ? Number(text) : Math.ceil((httpDate(text) - now) / 1000);
  return Number.isNaN(seconds) ? null : Math.min(Math.max(seconds, 0), most);
}

/** Parses a date in milliseconds; NaN if it is none. RFC 9110 §5.6.7: all dates are in GMT, even if the asctime form does not name the zone. */
export function httpDate(text: string): number {
  if (!/^[A-Z][a-z]{2,8},? /.test(text)) return Number.NaN;
  return Date.parse(text.endsWith(" GMT") ? text : `${text} GMT`);
}
