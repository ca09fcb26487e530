import { reasonOf } from "../../core/errors.ts";
import type { Clock } from "../../core/time/clock.ts";

export interface DirectRequest {
  method?: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | undefined;
  /** Time for the request and its answer. */
  timeoutMs: number;
  /** Maximum number of bytes read of the answer's body. The rest is dropped. */
  maxBytes: number;
}

export type DirectOutcome =
  | { kind: "answered"; status: number; body: Buffer }
  | { kind: "failed"; reason: string };

/** Options that keep `fetch` from the proxies of HTTP_PROXY, which would see the key and could answer for the service. */
const DIRECT = { proxy: false, redirect: "manual" } as const;

/** Sends a request to the host of the URL and to no proxy. Follows no redirect. @throws Error if there is no answer */
export function fetchDirect(
  url: URL,
  request: Pick<DirectRequest, "method" | "headers" | "body"> & { signal: AbortSignal },
): Promise<Response> {
  // The types of Bun lack `false`, which it knows since 1.4.
  return fetch(url, { ...request, ...DIRECT } as unknown as RequestInit);
}

/** Sends one request like `fetchDirect`, and returns its answer or why there is none. Never rejects. */
export async function exchangeDirect(
  clock: Clock,
  url: URL,
  { timeoutMs, maxBytes, ...request }: DirectRequest,
): Promise<DirectOutcome> {
  const ending = new AbortController();
  const cancel = clock.after(timeoutMs, () => ending.abort());
  try {
    const response = await fetchDirect(url, { ...request, signal: ending.signal });
    return { kind: "answered", status: response.status, body: await startOf(response, maxBytes) };
  } catch (error) {
    return {
      kind: "failed",
      reason: ending.signal.aborted ? "timeout" : `connection failed: ${reasonOf(error)}`,
    };
  } finally {
    cancel();
  }
}

/** Returns the first bytes of an answer's body. */
export async function startOf(response: Response, maxBytes: number): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let left = maxBytes;
  for await (const piece of response.body ?? []) {
    pieces.push(piece.subarray(0, left));
    left -= piece.length;
    if (left <= 0) break;
  }
  return Buffer.concat(pieces);
}
