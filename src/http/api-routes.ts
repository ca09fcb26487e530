import { asksToJoin } from "../flows/audience/double-opt-in.ts";
import { mailSignInLink } from "../flows/account/sign-in.ts";
import { log } from "../log.ts";
import type { Parts } from "./routing/parts.ts";
import { resendRoutes } from "./resend/routes.ts";
import { contactBatchRoute } from "./routes/contact-batch.ts";
import { contactPropertyRoutes } from "./routes/audience/properties.ts";
import { broadcastRoutes } from "./routes/audience/broadcasts.ts";
import { segmentRoutes } from "./routes/audience/segments.ts";
import { topicRoutes } from "./routes/audience/topics.ts";
import { joinRoutes } from "./routes/audience/join.ts";
import { contactRoutes } from "./routes/contacts.ts";
import { domainRecordRoutes } from "./routes/domain-records.ts";
import { domainReportRoutes } from "./routes/domain-reports.ts";
import { exportRoutes } from "./routes/exports.ts";
import { erasureRoutes } from "./routes/erasures.ts";
import { forwardAddressRoutes } from "./routes/forward-addresses.ts";
import { importRoutes } from "./routes/imports.ts";
import { relayEventRoutes } from "./routes/relay-events.ts";
import { domainRoutes } from "./routes/domains.ts";
import { approvalLinkRoutes } from "./routes/emails/approval-link.ts";
import { deletionRoutes } from "./routes/emails/deletions.ts";
import { emailRoutes } from "./routes/emails/emails.ts";
import { inboundRoutes } from "./routes/emails/inbound.ts";
import { inboxRoutes } from "./routes/emails/inboxes.ts";
import { threadRoutes } from "./routes/threads/threads.ts";
import { trackingRoutes } from "./routes/emails/tracking.ts";
import { unsubscribeRoutes } from "./routes/emails/unsubscribe.ts";
import { eventStreamRoute } from "./routes/event-stream.ts";
import { accountRoutes } from "./routes/projects/account.ts";
import { auditLogRoutes } from "./routes/projects/audit-log.ts";
import { apiKeyRoutes } from "./routes/projects/api-keys.ts";
import { healthRoutes } from "./routes/projects/health.ts";
import { testControlRoutes } from "./routes/projects/test-controls.ts";
import { memberRoutes } from "./routes/projects/members.ts";
import { noticeRoutes } from "./routes/projects/notices.ts";
import { laneRoutes } from "./routes/projects/lanes.ts";
import { outRouteRoutes } from "./routes/projects/out-routes.ts";
import { quotaRoutes } from "./routes/projects/quota.ts";
import { senderRoutes } from "./routes/projects/senders.ts";
import { settingRoutes } from "./routes/projects/settings.ts";
import { statsRoutes } from "./routes/projects/stats.ts";
import { ruleRoutes } from "./routes/rules.ts";
import { suppressionRoutes } from "./routes/suppressions.ts";
import { templateRoutes } from "./routes/templates.ts";
import { webhookDeliveryRoutes } from "./routes/webhook-deliveries.ts";
import { webhookRoutes } from "./routes/webhooks.ts";
import type { Route } from "./routing/route.ts";

/** Returns the parts of routes of mailed links, such as one that confirms something. */
function linkDeps(parts: Parts) {
  return { ...parts, publicUrl: parts.config.publicUrl, linkKey: parts.fileKey };
}

/** The routes of `/v1` in the order of the reference. */
const ROUTES: readonly ((parts: Parts) => Route | Route[])[] = [
  emailRoutes,
  eventStreamRoute,
  threadRoutes,
  inboundRoutes,
  deletionRoutes,
  erasureRoutes,
  exportRoutes,
  apiKeyRoutes,
  auditLogRoutes,
  mailingMemberRoutes,
  healthRoutes,
  noticeRoutes,
  laneRoutes,
  testControlRoutes,
  settingRoutes,
  accountRoutes,
  senderRoutes,
  outRouteRoutes,
  domainRoutes,
  domainRecordRoutes,
  domainReportRoutes,
  inboxRoutes,
  ruleRoutes,
  (parts) => forwardAddressRoutes(linkDeps(parts)),
  templateRoutes,
  (parts) => contactRoutes({ ...parts, asksToJoin: (project) => asksToJoin(linkDeps(parts), project) }),
  (parts) => joinRoutes(linkDeps(parts)),
  contactBatchRoute,
  contactPropertyRoutes,
  topicRoutes,
  segmentRoutes,
  broadcastRoutes,
  suppressionRoutes,
  importRoutes,
  statsRoutes,
  quotaRoutes,
  webhookRoutes,
  webhookDeliveryRoutes,
  unsubscribeRoutes,
  (parts) => approvalLinkRoutes(linkDeps(parts)),
  trackingRoutes,
  relayEventRoutes,
];

function mailingMemberRoutes(parts: Parts): Route[] {
  const mailing = { ...parts, publicUrl: parts.config.publicUrl };
  const failed = (error: unknown) => log("members").warn("no link was mailed", { error });
  return memberRoutes({ db: parts.db, mailLink: (member) => mailSignInLink(mailing, member).catch(failed) });
}

/** Returns all routes of the API, those that speak Resend's dialect last. */
export function apiRoutes(parts: Parts): Route[] {
  const routes = ROUTES.flatMap((make) => make(parts));
  return [...routes, ...resendRoutes(routes, parts)];
}
