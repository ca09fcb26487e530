import { type Static, Type } from "@sinclair/typebox";
import { limitsOf, type QuotaLimits, type Resource } from "../../../core/quotas.ts";
import { volumeOfDay } from "../../../flows/accept/volume.ts";
import { type Holdings, holdingsOf } from "../../../store/projects/holdings.ts";
import { ok } from "../../routing/answer.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { Nullable, showTime, Timestamp } from "../../routing/schemas.ts";
import type { Parts } from "../../routing/parts.ts";

const HeldSchema = Type.Object({
  used: Type.Integer({ minimum: 0 }),
  limit: Nullable(
    Type.Integer({ minimum: 0, description: "The limit of the project's plan. Null: there is no limit." }),
  ),
});

const ResourcesSchema = Type.Object(
  {
    storedOctets: Type.Object(HeldSchema.properties, {
      description:
        "Mail, attachments, templates, contacts, stored answers and logs, in octets before compression. Deleted messages stop counting within two hours.",
    }),
    templates: HeldSchema,
    webhooks: HeldSchema,
    inboxes: HeldSchema,
    domains: HeldSchema,
    apiKeys: Type.Object(HeldSchema.properties, {
      description: "The project's own keys that are not revoked.",
    }),
    contacts: HeldSchema,
    suppressions: Type.Object(HeldSchema.properties, {
      description: "Bounces and complaints add entries even beyond the limit.",
    }),
  },
  { title: "Resources" },
);

const QuotaSchema = Type.Object(
  {
    limit: Nullable(
      Type.Integer({
        minimum: 0,
        description:
          "Recipients per UTC day: the lower limit of project and trust tier. Null: there is no limit.",
      }),
    ),
    used: Type.Integer({
      minimum: 0,
      description:
        "Recipients accepted today, including suppressed, simulated and scheduled ones. Recipients that fail or are canceled later still count.",
    }),
    remaining: Nullable(
      Type.Integer({ minimum: 0, description: "The rest of the limit. Null: there is no limit." }),
    ),
    resetAt: Type.Unsafe<string>({ ...Timestamp, description: "When the next UTC day begins." }),
    resources: ResourcesSchema,
  },
  { title: "Quota" },
);

/** Returns what a project holds of each resource, with its plan's limit. */
function resourcesOf(held: Holdings, limits: QuotaLimits): Static<typeof ResourcesSchema> {
  const of = (resource: Resource) => ({ used: held[resource], limit: limits[resource] });
  return {
    storedOctets: of("storedOctets"),
    templates: of("templates"),
    webhooks: of("webhooks"),
    inboxes: of("inboxes"),
    domains: of("domains"),
    apiKeys: of("apiKeys"),
    contacts: of("contacts"),
    suppressions: of("suppressions"),
  };
}

/** Returns the route of `/v1/quota`. */
export function quotaRoutes({ db, volume, quotas }: Parts): Route[] {
  return [
    projectRoute({
      method: "GET",
      path: "/v1/quota",
      operationId: "getQuota",
      summary: "Get the remaining daily volume and quotas",
      description:
        "A send beyond the volume gets 403 `daily_quota_exceeded` or `trust_tier_exceeded`. A resource beyond the plan gets 403 `quota_exceeded`, with its name in `param`.",
      scope: "emails:send",
      answers: { 200: QuotaSchema },
      async handle({ project, now }) {
        const { resetAt, ...counts } = await volumeOfDay(db, volume, project, now);
        const held = await holdingsOf(db, project.id);
        const resources = resourcesOf(held, limitsOf(quotas, project.plan));
        return ok({ ...counts, resetAt: showTime(resetAt), resources } satisfies Static<typeof QuotaSchema>);
      },
    }),
  ];
}
