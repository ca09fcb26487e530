import type { Config } from "../../config.ts";
import { removePropertyValues } from "../../flows/audience/properties.ts";
import {
  giveBackSpace,
  removeDeletedInboxes,
  removeDeletedWebhooks,
  removeUnusedContents,
} from "../../flows/sweep/removals.ts";
import { deleteProjects } from "../../flows/sweep/delete-projects.ts";
import { commitImports, forgetImports } from "../../flows/imports/commit.ts";
import { eraseAddresses, type EraseDeps } from "../../flows/sweep/erase.ts";
import { leaveFolders } from "../../flows/threads/leave-folders.ts";
import {
  forgetAudit,
  endContents,
  forgetContents,
  forgetCounts,
  forgetDeliveries,
  forgetFigures,
  forgetMessages,
  forgetForwardAddresses,
  forgetJoinLinks,
  forgetNotices,
  forgetReplies,
  forgetReports,
  forgetSuppressions,
} from "../../flows/sweep/retention.ts";
import type { Chore } from "../process/loop.ts";
import { databaseFile } from "./database.ts";
import type { Objects } from "./objects.ts";

/**
 * Returns the chores that limit the database. They delete what is older than the retention (0 days keeps it for good), and
 * move contents to the object store if there is one.
 */
export function storageChores(
  config: Config,
  deps: Omit<EraseDeps, "isFile">,
  store: Objects | null,
): readonly Chore[] {
  const { retentionContentDays: contentDays, retentionEventDays: eventDays } = config;
  const { db } = deps;
  return [
    { name: "unused-contents", turn: () => removeUnusedContents(deps) },
    { name: "deleted-webhooks", turn: () => removeDeletedWebhooks(deps.db) },
    { name: "deleted-inboxes", turn: removeDeletedInboxes(deps) },
    { name: "deleted-properties", turn: () => removePropertyValues(deps) },
    { name: "leaving-threads", turn: leaveFolders(deps) },
    { name: "old-counts", turn: forgetCounts(deps) },
    { name: "old-figures", turn: forgetFigures(deps) },
    { name: "old-reports", turn: forgetReports(deps, config.retentionReportDays) },
    { name: "old-audit", turn: forgetAudit(deps, config.retentionAuditDays) },
    { name: "old-replies", turn: forgetReplies(deps) },
    { name: "removed-forward-addresses", turn: forgetForwardAddresses(deps) },
    { name: "old-join-links", turn: forgetJoinLinks(deps) },
    { name: "old-notices", turn: forgetNotices(deps) },
    { name: "imports", turn: commitImports({ ...deps, quotas: config.quotas }) },
    { name: "old-imports", turn: forgetImports(deps) },
    { name: "expired-suppressions", turn: forgetSuppressions(deps) },
    { name: "ended-contents", turn: endContents(deps) },
    { name: "deleted-projects", turn: deleteProjects(deps) },
    { name: "erasures", turn: eraseAddresses({ ...deps, isFile: databaseFile(config) !== null }) },
    { name: "old-contents", turn: forgetContents(deps, contentDays) },
    { name: "old-messages", turn: forgetMessages(deps, eventDays) },
    { name: "old-deliveries", turn: forgetDeliveries(deps, eventDays) },
    // A server gives back its own space.
    ...(databaseFile(config) !== null ? [{ name: "free-space", turn: () => giveBackSpace(db) }] : []),
    ...(store?.chores(deps.db) ?? []),
  ];
}
