import { Type } from "@sinclair/typebox";
import type { DeliveryMode } from "../../../config/settings.ts";
import { ok } from "../../routing/answer.ts";
import { openRoute, type Route } from "../../routing/route.ts";

const Home = Type.Object(
  {
    name: Type.Literal("Postrider"),
    delivery: Type.String({ description: "How outgoing mail leaves: `capture`, `relay` or `mx`." }),
    reference: Type.String({ description: "URL of the reference." }),
    openapi: Type.String({ description: "URL of the OpenAPI document." }),
    ready: Type.String({ description: "URL that tells whether the service can work." }),
  },
  { title: "Home" },
);

export interface HomeDeps {
  publicUrl: string;
  delivery: DeliveryMode;
}

/** `/` for clients that are no browser. To a browser the server shows the dashboard. */
export function homeRoutes({ publicUrl, delivery }: HomeDeps): Route[] {
  return [
    openRoute({
      method: "GET",
      path: "/",
      operationId: "getHome",
      summary: "Show what runs here and where to go next",
      description: "A browser gets the dashboard.",
      answers: { 200: Home },
      handle: () =>
        ok({
          name: "Postrider",
          delivery,
          reference: `${publicUrl}/docs`,
          openapi: `${publicUrl}/docs/json`,
          ready: `${publicUrl}/readyz`,
        }),
    }),
  ];
}
