import type { NoticeKind, NoticeLevel } from "../../core/notices/kinds.ts";
import type { Notice } from "../../store/notices/notices.ts";
import { fixOf, NOTICE_TYPES, type NoticeFix } from "./kinds.ts";

/** A notice, as the API and webhooks show it. Times in ISO 8601. */
export interface ShownNotice {
  id: string;
  at: string;
  kind: NoticeKind;
  level: NoticeLevel;
  subject: string;
  message: string;
  fix: NoticeFix;
  senderId: string | null;
  seenAt: string | null;
  endedAt: string | null;
}

/** Returns a notice with its words. */
export function shownNotice(notice: Notice): ShownNotice {
  const { id, at, kind, subject, senderId, seenAt, endedAt } = notice;
  const { level, says } = NOTICE_TYPES[kind];
  return {
    id,
    at: new Date(at).toISOString(),
    kind,
    level,
    subject,
    message: says(notice),
    fix: fixOf(notice),
    senderId,
    seenAt: seenAt === null ? null : new Date(seenAt).toISOString(),
    endedAt: endedAt === null ? null : new Date(endedAt).toISOString(),
  };
}
