import type { DMARCResult } from "mailauth";
import type { evaluateDmarc } from "mailauth/lib/dmarc";

/** A policy that a domain asks for (RFC 9989 §4.7). */
type Policy = "none" | "quarantine" | "reject";

/** The result of DMARC. `policy`: for mail that fails; null if the domain publishes none or it is not known. */
export interface DmarcVerdict {
  result: string;
  policy: Policy | null;
  domain: string | null;
}

/** A result of mailauth's; without a response if the mail has no single author domain. */
export type Evaluated = Awaited<ReturnType<typeof evaluateDmarc>>;

/** Returns the verdict for a result. */
export function dmarcVerdict({ response, reason }: Evaluated): DmarcVerdict {
  if (!response)
    return { result: reason === "no-author-domain" ? "none" : "permerror", policy: null, domain: null };
  return {
    result: response.status.result,
    policy: policyOf(response),
    domain: response.status.header?.from ?? null,
  };
}

function policyOf(response: DMARCResult): Policy | null {
  const { policy, rr } = response;
  if (policy !== "none" && policy !== "quarantine" && policy !== "reject") return null;
  return wholePolicy(mayReject(response) ? "reject" : policy, rr);
}

/**
 * Returns whether the policy may be `reject` though mailauth gives a weaker one. A subdomain's is `sp` or `np`, and
 * mailauth takes the weaker if it could not determine whether the subdomain exists. It then names no applied
 * policy.
 */
function mayReject({ status, policyDomain, sp, np, testMode }: DMARCResult): boolean {
  if (status.result !== "temperror" || status.policy !== undefined || testMode || np === undefined)
    return false;
  return status.header?.from !== policyDomain && (sp === "reject" || np === "reject");
}

/**
 * Lowers `reject` to `quarantine` if the record has a `pct=` below 100 (RFC 7489 §6.6.4): a domain that still publishes one is
 * not ready to lose mail. RFC 9989 has dropped the tag; its `t=y` means `pct=0`.
 */
function wholePolicy(policy: Policy, record = ""): Policy {
  const percent = /(?:^|;)\s*pct\s*=\s*(\d{1,3})\s*(?:;|$)/i.exec(record)?.[1];
  return policy === "reject" && percent !== undefined && Number(percent) < 100 ? "quarantine" : policy;
}
