import { Type } from "@sinclair/typebox";
import { ok } from "../../routing/answer.ts";
import { accountRoute, type Route } from "../../routing/route.ts";
import { Nullable, OneOf } from "../../routing/schemas.ts";
import type { Parts } from "../../routing/parts.ts";

const SettingView = Type.Object(
  {
    name: Type.String(),
    value: Nullable(
      Type.String({ description: "As the variable takes it. Null: there is none, or it is secret." }),
    ),
    source: OneOf(["environment", "file", "default"]),
    secret: Type.Boolean(),
    set: Type.Boolean({ description: "Whether there is a value. A secret shows only this." }),
    help: Type.String(),
  },
  { title: "Setting" },
);

/** Returns the route that shows the settings of the process that answers. */
export function settingRoutes({ settings }: Parts): Route[] {
  return [
    accountRoute({
      method: "GET",
      path: "/v1/settings",
      operationId: "listSettings",
      summary: "List the settings in effect, without secrets",
      description:
        "Shows the value and the source of each setting of the process that answers. Settings are environment variables, so they cannot be changed here. Requires an account-wide key.",
      scope: "metrics:read",
      accountWide: true,
      answers: { 200: Type.Object({ data: Type.Array(SettingView) }) },
      handle: () => ok({ data: settings }),
    }),
  ];
}
