import type { AuthVerdict } from "../../mail/authenticate.ts";

/**
 * Whether the author's domain wants this mail refused (RFC 9989 §5.4). An ARC chain overrides nothing: that takes trust
 * in a sealer (RFC 8617 §7.2.1), and nobody is trusted here. What could not be found out is no failure.
 */
export function refusedByPolicy({ dmarc }: AuthVerdict): boolean {
  return dmarc.result === "fail" && dmarc.policy === "reject";
}
