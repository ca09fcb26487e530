import { type GuardedDeps, requestGuarded } from "./guarded-request.ts";
import { MAX_POLICY_OCTETS, parseStsPolicy, type StsPolicy } from "./mta-sts-policy.ts";

/** RFC 8461 §3.3 suggests a minute for all of it. */
export const FETCH_TIMEOUT_MS = 60_000;

export interface FetchOptions {
  /** 443; another one in tests. */
  port: number;
  /** Lets the policy host have a private address; for development. */
  allowPrivate: boolean;
}

export type FetchedPolicy = { kind: "policy"; policy: StsPolicy } | { kind: "failed"; reason: string };

const OK = 200;

/**
 * Fetches a domain's policy (RFC 8461 §3.3): over TLS with a certificate that is valid for `mta-sts.<domain>`, following
 * no redirect, from a public address, of bounded size and time. Never throws.
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
    // One more than a policy may have, so that a longer one is seen to be.
    maxBodyOctets: MAX_POLICY_OCTETS + 1,
    timeoutMs: FETCH_TIMEOUT_MS,
    allowPrivate: options.allowPrivate,
  });
  if (outcome.kind === "failed") return outcome;
  const { status, headers, body } = outcome.response;
  const failed = (reason: string): FetchedPolicy => ({ kind: "failed", reason });
  if (status !== OK) return failed(`HTTP status ${status}`);
  // A host where strangers may put files of other kinds must not speak for its domain (RFC 8461 §3.2).
  if (!/^text\/plain[ \t]*(;|$)/i.test(headers.get("content-type") ?? "")) return failed("not text/plain");
  if (body.length > MAX_POLICY_OCTETS) return failed("too large");
  // A policy cut short on its way could have lost its mode or the end of its max_age.
  if (!outcome.whole) return failed("incomplete");
  const policy = parseStsPolicy(body);
  return policy === null ? failed("not a policy") : { kind: "policy", policy };
}
