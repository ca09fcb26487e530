import { type Static, Type } from "@sinclair/typebox";
import type { Health } from "../../flows/health/check.ts";
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
        message: Type.String({ description: "The result, in words for the operator." }),
        fix: Type.Optional(Type.String({ description: "How to fix it." })),
      }),
    ),
    checkedAt: Timestamp,
  },
  { title: "Health" },
);

export interface HealthDeps {
  health: () => Promise<Health>;
}

/** Returns the route of `/v1/health`. */
export function healthRoutes({ health }: HealthDeps): Route[] {
  return [
    accountRoute({
      method: "GET",
      path: "/v1/health",
      operationId: "getHealth",
      summary: "Check the health of the installation",
      description:
        "Checks disk, database, queues, Redis, clock, certificate and settings. `postrider doctor` also checks DNS, port 25 and the object store. Results are at most ten seconds old. Always answers 200, so load balancers should use `/readyz`. Requires an account-wide key.",
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
