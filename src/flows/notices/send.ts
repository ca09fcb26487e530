import { addressKey } from "../../core/addresses.ts";
import type { Key } from "../../core/crypto/key-ring.ts";
import { newId } from "../../core/ids.ts";
import type { NoticeKind } from "../../core/notices/kinds.ts";
import { DAY_MS } from "../../core/time/units.ts";
import { log } from "../../log.ts";
import { hint } from "../../queue/hint.ts";
import { isBroken, requireGuard } from "../../store/engine/guards.ts";
import type { Statement } from "../../store/engine/client.ts";
import { type NoticeSettings, noticeSettings, refusingMail } from "../../store/notices/notice-settings.ts";
import {
  accountsToTell,
  dropUnsent,
  noteSent,
  type Notice,
  noticesToSend,
  unsentGuard,
} from "../../store/notices/notices.ts";
import { erasedForms } from "../../store/projects/erased-addresses.ts";
import type { Project } from "../../store/projects/projects.ts";
import { insertOwnDelivery } from "../../store/webhooks/delivery-log.ts";
import { type Mailing, mailProject, type OwnMail, sendOwnMail } from "../account/service-mail.ts";
import { laneOf } from "../webhooks/push-lanes.ts";
import { approvalUrl } from "./approval-link.ts";
import { fixOf, NOTICE_TYPES } from "./kinds.ts";
import { shownNotice } from "./view.ts";

/** The services that send notices. */
export interface SendDeps extends Mailing {
  /** Seals the links by which a message is approved. */
  linkKey: Key;
}

/** Maximum number of accounts of a turn, and of notices in one message. Further ones come with the next turn. */
const ACCOUNTS_PER_TURN = 100;
const NOTICES_PER_MAIL = 20;

/** Sends what was raised: by mail, one message to each address with all notices, and to the webhook. */
export async function sendNotices(deps: SendDeps): Promise<void> {
  for (const accountId of await accountsToTell(deps.db, startOfDay(deps.clock.now()), ACCOUNTS_PER_TURN))
    await tell(deps, accountId).catch((error: unknown) => {
      log("notices").error("notices could not be sent", { accountId, error: String(error) });
    });
}

/**
 * Sends an account's notices. They are noted as sent in the write that stores the mail and the pushes, so a crash neither loses
 * nor doubles one.
 */
async function tell(deps: SendDeps, accountId: string): Promise<void> {
  const { db, clock } = deps;
  const now = clock.now();
  const settings = await noticeSettings(db, accountId);
  if (settings.off.length > 0) await db.write([dropUnsent(accountId, settings.off)]);
  const notices = await noticesToSend(db, accountId, {
    off: settings.off,
    today: startOfDay(now),
    take: NOTICES_PER_MAIL,
  });
  const told = firstOfEach(notices);
  if (told.length === 0) return;
  const ids = told.map(({ id }) => id);
  const project = await mailProject(deps, accountId);
  const mails = (await addressesOf(deps, project, settings)).map((to) => mailWith(deps, to, told));
  const pushes = pushesOf(settings, told, now);
  const record = [
    requireGuard("changed_since_read", unsentGuard(ids)),
    noteSent(ids, now),
    ...pushes.map(({ statement }) => statement),
  ];
  try {
    // Without an address there is no message that could carry the rest.
    await (mails.length === 0 ? db.write(record) : sendOwnMail(deps, project, mails, record));
  } catch (error) {
    // Another process has sent them.
    if (!isBroken(error, "changed_since_read")) throw error;
    return;
  }
  hint(
    deps.queue,
    "push",
    pushes.map(({ job }) => job),
  );
}

function startOfDay(now: number): number {
  return Math.floor(now / DAY_MS) * DAY_MS;
}

/** Leaves out a second notice of a kind and subject, which waits for the next day. */
function firstOfEach(notices: readonly Notice[]): Notice[] {
  const byFact = new Map<string, Notice>();
  for (const notice of notices) {
    const fact = `${notice.kind} ${notice.subjectId}`;
    if (!byFact.has(fact)) byFact.set(fact, notice);
  }
  return [...byFact.values()];
}

/** Returns the addresses that may get mail: none that is suppressed or has unsubscribed. */
async function addressesOf(
  { db, clock }: Mailing,
  project: Project,
  { to }: NoticeSettings,
): Promise<string[]> {
  const forms = await erasedForms(db, project.id, to.map(addressKey));
  const keys = [...forms.values(), ...forms.keys()];
  const refusing = await refusingMail(db, project.accountId, keys, clock.now());
  const refused = new Set([...refusing].map((key) => forms.get(key) ?? key));
  return to.filter((address) => !refused.has(addressKey(address)));
}

function mailWith(deps: SendDeps, to: string, notices: readonly Notice[]): OwnMail {
  const [first] = notices;
  const subject =
    notices.length === 1 && first !== undefined
      ? `${titleOf(first.kind)}: ${first.subject}`
      : `${notices.length} notices from Postrider`;
  const parts = notices.map((notice) => partOf(deps, to, notice)).join("\n");
  const footer = `Choose which notices you get: ${deps.publicUrl}/settings?view=notices`;
  return { to, subject, text: `${parts}\n-- \nPostrider at ${deps.publicUrl}\n${footer}\n` };
}

/** Returns the name of a kind for people, such as `Webhook failing`. */
export function titleOf(kind: NoticeKind): string {
  const words = kind.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function partOf(deps: SendDeps, to: string, notice: Notice): string {
  const { label, path } = fixOf(notice);
  const links = [`${label}: ${deps.publicUrl}${path}`];
  if (notice.kind === "approval_waiting")
    links.unshift(`Read it, then approve or reject it: ${approvalUrl(deps, to, notice)}`);
  return `${NOTICE_TYPES[notice.kind].says(notice)}\n\n${links.join("\n")}\n`;
}

function pushesOf({ webhook }: NoticeSettings, notices: readonly Notice[], now: number) {
  if (webhook === null) return [];
  // A notice about the webhook itself could not reach it, and would be one more failure.
  const others = notices.filter(({ subjectId }) => subjectId !== webhook.id);
  return others.map((notice) => {
    const delivery = {
      id: newId("dlv", now),
      type: "notice",
      data: { notice: shownNotice(notice) },
    } as const;
    const statement: Statement = insertOwnDelivery(webhook.senderId, webhook.id, delivery, now);
    return { statement, job: { key: delivery.id, lane: laneOf(webhook.senderId, webhook.id) } };
  });
}
