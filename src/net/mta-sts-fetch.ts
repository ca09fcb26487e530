import { type GuardedDeps, requestGuarded } from "./guarded-request.ts";
import { MAX_POLICY_OCTETS, parseStsPolicy, type StsPolicy } from "./mta-sts-policy.ts";

/** RFC 8461 §3.3 suggests one minute in total. */
export const FETCH_TIMEOUT_MS = 60_000;

export interface FetchOptions {
  /** 443; tests use another one. */
  port: number;
  /** Allows private addresses for the policy host; for development. */
  allowPrivate: boolean;
}

export type FetchedPolicy = { kind: "policy"; policy: StsPolicy } | { kind: "failed"; reason: string };

const OK = 200;

/**
 * Fetches a domain's policy (RFC 8461 §3.3): over TLS with a certificate valid for `mta-sts.<domain>`, from a public
 * address, without redirects, with limits of size and time. Never throws.
 */
export async function fetchStsPolicy(
  deps: GuardedDeps,
  domain: string,
  options: FetchOptions,
): Promise<FetchedPolicy> {
  const port = options.port === 443 ? "" : `:${options.port}`;
  const outcome = await requestGuarded(deps, {
    url: `https://mta-sts.${domain}${port}/.well-known/mta-sts.txt`,
    headers: { Accept: "text/plain", "User-Agent": "postrider" },
    body: null,
    // One more than the maximum, so that a longer policy is detected.
    maxBodyOctets: MAX_POLICY_OCTETS + 1,
    timeoutMs: FETCH_TIMEOUT_MS,
    allowPrivate: options.allowPrivate,
  });
  if (outcome.kind === "failed") return outcome;
  const { status, headers, body } = outcome.response;
  const failed = (reason: string): FetchedPolicy => ({ kind: "failed", reason });
  if (status !== OK) return failed(`HTTP status ${status}`);
  // A host where users may upload other files must not publish a policy that way (RFC 8461 §3.2).
  if (!/^text\/plain[ \t]*(;|$)/i.test(headers.get("content-type") ?? "")) return failed("not text/plain");
  if (body.length > MAX_POLICY_OCTETS) return failed("too large");
  // If a policy is cut short, its mode or the end of max_age may be missing.
  if (!outcome.whole) return failed("incomplete");
  const policy = parseStsPolicy(body);
  return policy === null ? failed("not a policy") : { kind: "policy", policy };
}
