import { type Static, Type } from "@sinclair/typebox";
import type { CertificateState } from "../../../flows/certificates/states.ts";
import { COMMIT, VERSION } from "../../../version.ts";
import { worstOf } from "../../../flows/health/check.ts";
import { ok } from "../../routing/answer.ts";
import { accountRoute, type Route } from "../../routing/route.ts";
import { Nullable, OneOf, showTime, Timestamp } from "../../routing/schemas.ts";
import type { Parts } from "../../routing/parts.ts";

const STATUSES = ["ok", "warn", "fail"] as const;
const SOURCES = ["acme", "file", "self-signed"] as const;

const HealthSchema = Type.Object(
  {
    version: Type.String({ description: "Version of the process that answers." }),
    commit: Nullable(Type.String({ description: "Commit it was built from; null in a clone." })),
    status: OneOf(STATUSES, "The worst of the checks'."),
    checks: Type.Array(
      Type.Object({
        name: Type.String(),
        status: OneOf(STATUSES),
        message: Type.String({ description: "The result, in words for the operator." }),
        fix: Type.Optional(Type.String({ description: "How to fix it." })),
        action: Type.Optional(
          Type.Object(
            {
              label: Type.String({ examples: ["Open the lane"] }),
              path: Type.String({ examples: ["/v1/lanes/yahoo/open"] }),
            },
            { description: "A POST that fixes it, once you have done the rest." },
          ),
        ),
      }),
    ),
    certificates: Type.Array(
      Type.Object({
        names: Type.Array(Type.String()),
        source: OneOf(
          SOURCES,
          "`acme`: ordered automatically. `file`: SMTP_TLS_CERT. `self-signed`: made at the start.",
        ),
        expiresAt: Nullable(Timestamp),
        nextAt: Nullable(Timestamp),
        lastError: Nullable(Type.Object({ message: Type.String(), at: Timestamp })),
      }),
      {
        description:
          "One for each certificate that the servers use or that is ordered for a delegated domain of the account. `nextAt` is when it is renewed or tried again; null if it is not ordered automatically.",
      },
    ),
    checkedAt: Timestamp,
  },
  { title: "Health" },
);

function shownCertificate({ accountId: _, expiresAt, nextAt, lastError, ...state }: CertificateState) {
  return {
    names: [...state.names],
    source: state.source,
    expiresAt: expiresAt === null ? null : showTime(expiresAt),
    nextAt: nextAt === null ? null : showTime(nextAt),
    lastError: lastError === null ? null : { message: lastError.text, at: showTime(lastError.at) },
  };
}

/** Returns the route of `/v1/health`. */
export function healthRoutes({ health, dnsHealth, certificates }: Parts): Route[] {
  return [
    accountRoute({
      method: "GET",
      path: "/v1/health",
      operationId: "getHealth",
      summary: "Check the health of the installation",
      description:
        "Checks disk, database, queues, Redis, clock, certificates and settings, and what providers answer to mail. `postrider doctor` also checks domains, port 25 and the object store. Results are at most ten seconds old, and those of `dns` ten minutes. Always answers 200, so load balancers should use `/readyz`. Requires an account-wide key.",
      scope: "metrics:read",
      accountWide: true,
      query: Type.Object({
        dns: Type.Optional(
          Type.Boolean({
            description:
              "True to check PTR, EHLO and SPF of the sending addresses, the zone of the service, the unsubscribe page and the role mailboxes, too.",
            examples: [true],
          }),
        ),
      }),
      answers: { 200: HealthSchema },
      async handle({ principal, query }) {
        const [local, dns, states] = await Promise.all([
          health(),
          query.dns === true ? dnsHealth() : null,
          certificates(),
        ]);
        const { checkedAt } = local;
        const checks = [...local.checks, ...(dns?.checks ?? [])];
        const status = worstOf(checks);
        return ok({
          version: VERSION,
          commit: COMMIT,
          status,
          checks,
          // Names of another account's domains are not for this one.
          certificates: states
            .filter(({ accountId }) => accountId === null || accountId === principal.accountId)
            .map(shownCertificate),
          checkedAt: showTime(checkedAt),
        } satisfies Static<typeof HealthSchema>);
      },
    }),
  ];
}
