import { notFound } from "../../core/errors.ts";
import type { OwnPolicy } from "../../flows/certificates/own-policy.ts";
import { raw } from "../answer.ts";
import { openRoute, type Route } from "../route.ts";

export interface MtaStsDeps {
  /** Host of our policy. */
  host: string;
  /** Returns our policy; null while it must not be served. */
  policy: () => Promise<OwnPolicy | null>;
}

/** Returns the route of our own MTA-STS policy (RFC 8461 §3.3). Under any other host, there is no such path. */
export function mtaStsRoutes({ host, policy }: MtaStsDeps): Route[] {
  return [
    openRoute({
      method: "GET",
      path: "/.well-known/mta-sts.txt",
      operationId: "getMtaStsPolicy",
      summary: "Read the MTA-STS policy of the service domain",
      description:
        "For mail servers that send to the service domain. It exists at the host `mta-sts.<SERVICE_DOMAIN>`, while `TLS_PORT` serves it under a certificate that they can verify.",
      answers: { 200: "text/plain" },
      errors: ["not_found"],
      async handle({ request }) {
        const asked = (request.headers.get("host") ?? "").replace(/:\d*$/, "").toLowerCase();
        const found = asked === host ? await policy() : null;
        if (found === null) throw notFound("path");
        return raw(found.text, "text/plain", { "cache-control": "no-store" });
      },
    }),
  ];
}
