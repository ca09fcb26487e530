import { existing } from "../../core/errors.ts";
import type { OwnPolicy } from "../../flows/certificates/own-policy.ts";
import { raw } from "../routing/answer.ts";
import { hostIn, POLICY_PATH } from "../routing/domain-hosts.ts";
import { openRoute, type Route } from "../routing/route.ts";

export interface MtaStsDeps {
  /**
   * Returns the policy that is served at a host; null if there is none. The host is a Host header without port, in lower
   * case. It may be any text.
   */
  policyAt: (host: string) => Promise<OwnPolicy | null>;
}

/** Returns the route of MTA-STS policies (RFC 8461 §3.3). Under a host without one, there is no such path. */
export function mtaStsRoutes({ policyAt }: MtaStsDeps): Route[] {
  return [
    openRoute({
      method: "GET",
      path: POLICY_PATH,
      operationId: "getMtaStsPolicy",
      summary: "Read the MTA-STS policy of the service domain or a delegated domain",
      description:
        "For mail servers that send to the domain. It exists at the host `mta-sts.` of the domain, while `TLS_PORT` serves it under a certificate that they can verify.",
      answers: { 200: "text/plain" },
      errors: ["not_found"],
      async handle({ request }) {
        const found = existing("path", await policyAt(hostIn(request.headers.get("host") ?? "")));
        return raw(found.text, "text/plain", { "cache-control": "no-store" });
      },
    }),
  ];
}
