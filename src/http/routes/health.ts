import { type Static, Type } from "@sinclair/typebox";
import type { Health } from "../../flows/health/cached.ts";
import { ok } from "../answer.ts";
import { accountRoute, type Route } from "../route.ts";
import { OneOf, showTime, Timestamp } from "../schemas.ts";

const STATUSES = ["ok", "warn", "fail"] as const;

const HealthSchema = Type.Object(
  {
    status: OneOf(STATUSES, "The worst of the checks'."),
    checks: Type.Array(
      Type.Object({
        name: Type.String(),
        status: OneOf(STATUSES),
        message: Type.String({ description: "What was found, in words for the operator." }),
        fix: Type.Optional(Type.String({ description: "How to put it right." })),
      }),
    ),
    checkedAt: Timestamp,
  },
  { title: "Health" },
);

export interface HealthDeps {
  health: () => Promise<Health>;
}

/** `/v1/health`. */
export function healthRoutes({ health }: HealthDeps): Route[] {
  return [
    accountRoute({
      method: "GET",
      path: "/v1/health",
      operationId: "getHealth",
      summary: "Look at what the installation stands on",
      description:
        "Disk, database, queues, Redis, clock, certificate and settings, as `postrider doctor` shows them; what lies outside (DNS, port 25, the object store) is for that command. Looked at every ten seconds at most. Answered 200 whatever is found: a load balancer asks `/readyz`. For account-wide keys.",
      scope: "metrics:read",
      accountWide: true,
      answers: { 200: HealthSchema },
      async handle() {
        const { status, checks, checkedAt } = await health();
        return ok({ status, checks: [...checks], checkedAt: showTime(checkedAt) } satisfies Static<
          typeof HealthSchema
        >);
      },
    }),
  ];
}
