/** What a notice is about. */
export const NOTICE_KINDS = [
  "domain_failing",
  "certificate_failing",
  "project_near_suspension",
  "project_suspended",
  "webhook_failing",
  "webhook_disabled",
  "quota_near",
  "volume_near",
  "address_blocked",
  "address_listed",
  "approval_waiting",
  "disk_low",
  "backup_old",
  "migration_failed",
  "rule_disabled",
  "erasure_done",
] as const;

export type NoticeKind = (typeof NOTICE_KINDS)[number];

/** How much a notice matters. `fail`: something does not work. `warn`: something soon will not. `info`: for your information. */
export const NOTICE_LEVELS = ["info", "warn", "fail"] as const;

export type NoticeLevel = (typeof NOTICE_LEVELS)[number];
