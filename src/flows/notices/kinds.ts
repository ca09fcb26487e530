import type { NoticeKind, NoticeLevel } from "../../core/notices/kinds.ts";
import type { Notice } from "../../store/notices/notices.ts";

/** A link to what needs someone. */
export interface NoticeFix {
  label: string;
  /** Path in the dashboard, after PUBLIC_URL. */
  path: string;
}

/** The fields of a notice that its words depend on. */
export type Worded = Pick<Notice, "subject" | "subjectId" | "detail" | "senderId">;

/** What a notice of one kind is. */
export interface NoticeType {
  level: NoticeLevel;
  /** Where its fact comes from. `facts`: the chore reads it (`watch`), and ends the notice. `write`: the write that makes it true. */
  from: "facts" | "write";
  /** When it ends, for the docs. */
  ends: string;
  /** The sentence for people. */
  says: (notice: Worded) => string;
  fix: (notice: Worded) => NoticeFix;
}

const HEALTH: NoticeFix = { label: "Open Home", path: "/" };
const SETTINGS: NoticeFix = { label: "Open the settings", path: "/settings" };

const project = ({ senderId }: Worded): NoticeFix => ({
  label: "Open the project",
  path: `/projects/${senderId}`,
});
const webhook = ({ senderId, subjectId }: Worded): NoticeFix =>
  senderId === null
    ? { label: "Open the settings of notices", path: "/settings?view=notices" }
    : { label: "Open the webhook", path: `/webhooks/${subjectId}` };
/** Names a webhook. One without a project carries the notices. */
const webhookAt = ({ senderId, subject }: Worded): string =>
  senderId === null ? `webhook for notices at ${subject}` : `webhook at ${subject}`;

/** Returns the link to what needs someone. It names the project, so that it opens whichever one the reader has chosen. */
export function fixOf(notice: Notice): NoticeFix {
  const { label, path } = NOTICE_TYPES[notice.kind].fix(notice);
  return { label, path: notice.senderId === null ? path : `${path}?project=${notice.senderId}` };
}

const because = ({ detail }: Worded): string => (detail === null ? "" : ` ${detail}`);

/** Every kind of notice. */
export const NOTICE_TYPES: Readonly<Record<NoticeKind, NoticeType>> = {
  domain_failing: {
    level: "fail",
    from: "facts",
    ends: "the next check finds all records, or the domain is deleted",
    says: ({ subject }) =>
      `Records of ${subject} are missing in the DNS, so its mail fails authentication or is refused.`,
    fix: ({ subjectId }) => ({ label: "Open the domain", path: `/domains/${subjectId}` }),
  },
  certificate_failing: {
    level: "warn",
    from: "facts",
    ends: "the certificate is renewed",
    says: (notice) => `The certificate for ${notice.subject} fails.${because(notice)}`,
    fix: () => SETTINGS,
  },
  project_near_suspension: {
    level: "warn",
    from: "facts",
    ends: "the rates fall, or the project is suspended",
    says: ({ subject }) => `The project ${subject} is near suspension for its bounces or complaints.`,
    fix: project,
  },
  project_suspended: {
    level: "fail",
    from: "facts",
    ends: "the suspension is lifted, or the project is deleted",
    says: ({ subject }) => `The project ${subject} is suspended: it sends nothing, and its mail waits.`,
    fix: project,
  },
  webhook_failing: {
    level: "warn",
    from: "facts",
    ends: "a push succeeds, or the webhook is disabled or deleted",
    says: (notice) =>
      `Every push to the ${webhookAt(notice)} fails. If that goes on, the webhook is disabled.`,
    fix: webhook,
  },
  webhook_disabled: {
    level: "fail",
    from: "facts",
    ends: "the webhook is enabled or deleted",
    says: (notice) =>
      `The ${webhookAt(notice)} was disabled: ${notice.detail ?? "it failed"}. It gets ${notice.senderId === null ? "none" : "no events"}.`,
    fix: webhook,
  },
  quota_near: {
    level: "warn",
    from: "facts",
    ends: "the project has less, or another plan",
    says: (notice) => `The project ${notice.subject} is near a limit of its plan.${because(notice)}`,
    fix: project,
  },
  volume_near: {
    level: "warn",
    from: "facts",
    ends: "the UTC day ends, or the limit is raised",
    says: (notice) =>
      `The project ${notice.subject} has used most of its recipients of the day.${because(notice)}`,
    fix: project,
  },
  address_blocked: {
    level: "fail",
    from: "facts",
    ends: "the lane is opened",
    says: (notice) => `${notice.subject} refuses our address, so mail to it waits.${because(notice)}`,
    fix: () => HEALTH,
  },
  address_listed: {
    level: "fail",
    from: "facts",
    ends: "the list no longer has it",
    says: (notice) => `The block list ${notice.subject} has our address.${because(notice)}`,
    fix: () => HEALTH,
  },
  approval_waiting: {
    level: "info",
    from: "write",
    ends: "the message is approved, rejected or expired",
    says: ({ detail }) =>
      `A message to ${detail === "1" ? "a recipient" : `${detail} recipients`} waits for an approval, for seven days at most.`,
    fix: ({ subjectId }) => ({ label: "Open the message", path: `/messages/${subjectId}` }),
  },
  disk_low: {
    level: "fail",
    from: "facts",
    ends: "the disk has room again",
    says: (notice) => `The disk is nearly full.${because(notice)}`,
    fix: () => HEALTH,
  },
  backup_old: {
    level: "warn",
    from: "facts",
    ends: "a backup succeeds",
    says: (notice) => `Backups have stopped.${because(notice)}`,
    fix: () => HEALTH,
  },
  migration_failed: {
    level: "fail",
    from: "facts",
    ends: "a version with that step starts",
    says: (notice) =>
      `Postrider ${notice.subject} could not start, because its change of the database failed.${because(notice)}`,
    fix: () => HEALTH,
  },
  rule_disabled: {
    level: "warn",
    from: "write",
    ends: "the rule is enabled or deleted",
    says: (notice) => `The rule ${notice.subject} was disabled.${because(notice)}`,
    fix: () => ({ label: "Open the rules", path: "/rules" }),
  },
  erasure_done: {
    level: "info",
    from: "write",
    ends: "at once",
    says: ({ subject }) =>
      `The erasure ${subject} is done: no message and no contact with that address is left.`,
    fix: () => HEALTH,
  },
};
