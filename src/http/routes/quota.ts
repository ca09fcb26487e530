import { type Static, Type } from "@sinclair/typebox";
import { type VolumeLimits, volumeOfDay } from "../../flows/send/volume.ts";
import type { Db } from "../../store/engine/client.ts";
import { ok } from "../answer.ts";
import { projectRoute, type Route } from "../route.ts";
import { Nullable, showTime, Timestamp } from "../schemas.ts";

const QuotaSchema = Type.Object(
  {
    limit: Nullable(
      Type.Integer({
        minimum: 0,
        description:
          "Recipients a UTC day: the lower of the project's quota and its trust tier's. Null: there is no limit.",
      }),
    ),
    used: Type.Integer({
      minimum: 0,
      description:
        "Recipients accepted today, suppressed, simulated and scheduled ones too. What fails or is canceled later is not given back.",
    }),
    remaining: Nullable(
      Type.Integer({ minimum: 0, description: "What is left of the limit. Null: there is no limit." }),
    ),
    resetAt: Type.Unsafe<string>({ ...Timestamp, description: "When the next UTC day begins." }),
  },
  { title: "Quota" },
);

/** `/v1/quota`. */
export function quotaRoutes({ db, volume }: { db: Db; volume: VolumeLimits }): Route[] {
  return [
    projectRoute({
      method: "GET",
      path: "/v1/quota",
      operationId: "getQuota",
      summary: "Read what is left of the day's sending volume",
      description: "A send over it is refused with 403 `daily_quota_exceeded` or `trust_tier_exceeded`.",
      scope: "emails:send",
      answers: { 200: QuotaSchema },
      async handle({ project, now }) {
        const { resetAt, ...counts } = await volumeOfDay(db, volume, project, now);
        return ok({ ...counts, resetAt: showTime(resetAt) } satisfies Static<typeof QuotaSchema>);
      },
    }),
  ];
}
