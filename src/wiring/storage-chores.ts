import type { Config } from "../config.ts";
import { sweepContents } from "../flows/contents/sweep.ts";
import { removeDeletedInboxes } from "../flows/sweep/deleted-inboxes.ts";
import { removeDeletedWebhooks } from "../flows/sweep/deleted-webhooks.ts";
import {
  forgetContents,
  forgetCounts,
  forgetDeliveries,
  forgetFigures,
  forgetMessages,
  forgetSuppressions,
  type RetentionDeps,
} from "../flows/sweep/retention.ts";
import type { Chore } from "./loop.ts";
import type { Objects } from "./objects.ts";

/**
 * The chores that keep the database from growing: what is older than the settings keep goes (0 days: kept for good),
 * and contents move into the object store where there is one.
 */
export function storageChores(config: Config, deps: RetentionDeps, store: Objects | null): readonly Chore[] {
  const { retentionContentDays: contentDays, retentionEventDays: eventDays } = config;
  return [
    { name: "unused-contents", turn: () => sweepContents(deps) },
    { name: "deleted-webhooks", turn: () => removeDeletedWebhooks(deps.db) },
    { name: "deleted-inboxes", turn: removeDeletedInboxes(deps) },
    { name: "old-counts", turn: forgetCounts(deps) },
    { name: "old-figures", turn: forgetFigures(deps) },
    { name: "expired-suppressions", turn: forgetSuppressions(deps) },
    ...(contentDays === 0 ? [] : [{ name: "old-contents", turn: forgetContents(deps, contentDays) }]),
    ...(eventDays === 0
      ? []
      : [
          { name: "old-messages", turn: forgetMessages(deps, eventDays) },
          { name: "old-deliveries", turn: forgetDeliveries(deps, eventDays) },
        ]),
    ...(store?.chores(deps.db) ?? []),
  ];
}
