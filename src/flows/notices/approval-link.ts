import { actingAs } from "../../core/actor.ts";
import { addressKey } from "../../core/addresses.ts";
import type { Key } from "../../core/crypto/key-ring.ts";
import { openLink, sealLink } from "../../core/crypto/sealed-link.ts";
import { AppError } from "../../core/errors.ts";
import { UNBOUND } from "../../core/key-bounds.ts";
import { htmlText } from "../../mail/text/preview.ts";
import { APPROVAL_MS, waitsForApproval } from "../../store/messages/approvals.ts";
import { noticeSettings } from "../../store/notices/notice-settings.ts";
import type { Notice } from "../../store/notices/notices.ts";
import { findMember } from "../../store/projects/members.ts";
import { approveSend, rejectSend } from "../accept/approval.ts";
import type { Making } from "../mime/making.ts";
import type { Outbox } from "../outbox.ts";
import { readRecord } from "../read/record.ts";

// A person who must sign in to approve a message, on a phone, does not. The dashboard's own page was the simpler way. The link shows
// one message to one address, and decides about it with a POST: scanners open links, and send no forms.

/** Path of the links. */
export const APPROVAL_PATH = "/a/";
/** Maximum characters of the text and number of recipients that the page shows. */
const MAX_TEXT_CHARS = 20_000;
const MAX_SHOWN_RECIPIENTS = 100;

/** The services that decide by a link. */
export interface LinkDeps extends Making, Outbox {
  linkKey: Key;
}

/** What a link names: a message, and the person who got it. */
export interface ApprovalLink {
  accountId: string;
  senderId: string;
  messageId: string;
  address: string;
}

/** Returns the link by which the reader of a notice decides about its message. It ends when the approval does. */
export function approvalUrl(
  { publicUrl, linkKey }: { publicUrl: string; linkKey: Key },
  address: string,
  { accountId, senderId, subjectId, at }: Notice,
): string {
  const content = [accountId, senderId, subjectId, address];
  return `${publicUrl}${APPROVAL_PATH}${sealLink(linkKey, "approval", content, at + APPROVAL_MS)}`;
}

/** Returns what a link names. Null: it was not made here, is too old, or its reader gets no notices any more. */
export async function openApprovalLink(
  { db, clock, linkKey }: LinkDeps,
  token: string,
): Promise<ApprovalLink | null> {
  const content = openLink(linkKey, "approval", token, clock.now());
  if (content === null) return null;
  const [accountId, senderId, messageId, address] = content as [string, string, string, string];
  const { to } = await noticeSettings(db, accountId);
  const key = addressKey(address);
  const member = await findMember(db, key);
  if (!to.some((one) => addressKey(one) === key) || member?.status === "disabled") return null;
  return { accountId, senderId, messageId, address };
}

/** A message as its approver sees it: nothing of it is loaded from anywhere. */
export interface MessageToApprove {
  waits: boolean;
  subject: string;
  from: string;
  recipients: readonly string[];
  /** Recipients that are left out. */
  more: number;
  files: readonly string[];
  text: string;
  cut: boolean;
}

/** Returns the message of a link; null if it is gone. @throws AppError 503 if too many reads wait */
export async function messageToApprove(
  deps: LinkDeps,
  { senderId, messageId }: ApprovalLink,
): Promise<MessageToApprove | null> {
  const record = await readRecord(deps, senderId, messageId, { mostEvents: 0 });
  if (record === null) return null;
  const { message, content, recipients, attachments } = record;
  const text = content.text ?? (content.html === null ? "" : htmlText(content.html));
  const shown = recipients.slice(0, MAX_SHOWN_RECIPIENTS);
  return {
    waits: recipients.some(({ reason }) => waitsForApproval(reason)),
    subject: message.subject,
    from: message.from.email,
    recipients: shown.map(({ email, kind }) => (kind === "to" ? email : `${email} (${kind})`)),
    more: recipients.length - shown.length,
    files: attachments.map(({ filename }) => filename ?? "a file without a name"),
    text: text.slice(0, MAX_TEXT_CHARS),
    cut: text.length > MAX_TEXT_CHARS,
  };
}

/** How a link was used. `decided`: someone was first, or the time is over. */
export type Decision = "approved" | "rejected" | "decided";

/** Decides about the message of a link in the name of its reader. @param from the request, for the audit trail */
export async function decideByLink(
  deps: LinkDeps,
  { senderId, messageId, address, accountId }: ApprovalLink,
  approves: boolean,
  from: { ip: string | null; requestId: string },
): Promise<Decision> {
  const member = await findMember(deps.db, addressKey(address));
  const id = member?.accountId === accountId ? member.id : null;
  const approver = { keyId: id ?? "", bounds: UNBOUND };
  try {
    await actingAs({ type: "member", id, name: address, ...from }, async () => {
      if (approves) await approveSend(deps, senderId, messageId, approver, () => []);
      else await rejectSend(deps, senderId, messageId, approver, { record: [] });
    });
    return approves ? "approved" : "rejected";
  } catch (error) {
    if (error instanceof AppError && (error.type === "conflict" || error.type === "not_found"))
      return "decided";
    throw error;
  }
}
