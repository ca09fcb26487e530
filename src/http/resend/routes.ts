import type { Route } from "../routing/route.ts";
import { apiKeyRoutes } from "./api-keys.ts";
import { attachmentRoutes, fileRoute } from "./attachments.ts";
import { broadcastRoutes } from "./broadcasts.ts";
import { contactImportRoutes } from "./audience/imports.ts";
import { propertyRoutes } from "./audience/properties.ts";
import { segmentRoutes } from "./audience/segments.ts";
import { topicRoutes } from "./audience/topics.ts";
import { contactRoutes } from "./contacts.ts";
import { domainRoutes } from "./domains.ts";
import { emailRoutes } from "./emails.ts";
import { receivingRoutes } from "./receiving.ts";
import { suppressionRoutes } from "./suppressions.ts";
import { templateRoutes } from "./templates.ts";
import { webhookEventRoutes } from "./webhook-events.ts";
import { webhookRoutes } from "./webhooks.ts";
import type { Parts } from "../routing/parts.ts";

/**
 * Returns the routes of `/resend`: the paths and bodies that the npm package `resend` 6 sends and reads, each translated to
 * an operation of `/v1`.
 * @param routes the routes of `/v1`
 */
export function resendRoutes(routes: readonly Route[], deps: Parts): Route[] {
  const operations = new Map(routes.map((route) => [route.operationId, route]));
  return [
    ...emailRoutes(operations, deps),
    ...attachmentRoutes(operations, deps, "/emails"),
    ...receivingRoutes(operations, deps),
    ...attachmentRoutes(operations, deps, "/emails/receiving"),
    fileRoute(deps),
    ...domainRoutes(operations, deps.db),
    ...propertyRoutes(operations, deps.db),
    ...topicRoutes(operations, deps.db),
    ...segmentRoutes(operations, deps.db),
    ...contactImportRoutes(operations, deps.db),
    ...contactRoutes(operations, deps.db),
    ...broadcastRoutes(operations, deps.db),
    ...templateRoutes(operations, deps.db),
    ...suppressionRoutes(operations, deps.db),
    ...webhookRoutes(operations, deps),
    ...webhookEventRoutes(operations, deps.db),
    ...apiKeyRoutes(operations, deps.db),
  ];
}
