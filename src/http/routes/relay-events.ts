import { Type } from "@sinclair/typebox";
import { AppError, notFound } from "../../core/errors.ts";
import { earlyReports } from "../../flows/deliver/early-reports.ts";
import { relayEventTaker } from "../../flows/relays/take-events.ts";
import { suspensionLimits } from "../../flows/deliver/reputation.ts";
import { findRoute } from "../../store/projects/routes.ts";
import { ok } from "../routing/answer.ts";
import type { Parts } from "../routing/parts.ts";
import { openRoute, type Route } from "../routing/route.ts";

/** Largest request of a relay's provider, bytes. SendGrid sends 768 KB, SNS 256 KB. */
export const MAX_EVENTS_BYTES = 1024 * 1024;

/**
 * Returns the route of relays' events. It needs no key: the provider proves each request. The reference leaves it out, because
 * its bodies are the providers'.
 */
export function relayEventRoutes(deps: Parts): Route[] {
  const { db, clock, config } = deps;
  const early = earlyReports(clock);
  const take = relayEventTaker({
    ...deps,
    suspension: suspensionLimits(config),
    earlyReports: early,
    get: deps.getDocument,
  });
  return [
    openRoute({
      undocumented: true,
      method: "POST",
      path: "/v1/routes/:id/events/:provider",
      operationId: "takeRelayEvents",
      summary: "Take events of a relay",
      description: "Called by the provider of a route's relay, which proves each request.",
      query: Type.Object({ secret: Type.Optional(Type.String({ examples: ["Xk3v…"] })) }),
      body: Type.Unknown(),
      bodyLimit: MAX_EVENTS_BYTES,
      signedBody: true,
      answers: { 200: Type.Object({ events: Type.Integer() }) },
      errors: ["authentication_error", "not_found", "rate_limited", "service_unavailable"],
      async handle({ params, request, query, body, bytes, now }) {
        const route = await findRoute(db, params.id);
        if (route === null || route.eventsProvider !== params.provider) throw notFound("route");
        if (body === undefined) throw new AppError("invalid_request", "The request has no body.");
        const header = (name: string) => request.headers.get(name);
        const secret = query.secret ?? null;
        return ok({ events: await take(route, { body, bytes, header, secret, now }) });
      },
    }),
  ];
}
