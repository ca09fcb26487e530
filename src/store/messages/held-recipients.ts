import { domainOfName } from "../domains/wildcards.ts";
import type { Db, Statement } from "../engine/client.ts";
import { FROM_DOMAIN } from "./messages.ts";
import type { DueRecipient } from "./due-recipients.ts";
import { type TriedKey, IS_DUE } from "./outbox.ts";

/** Reasons why a recipient waits without a try. Its mail goes out once the reason is gone. */
export const HELD_FOR = {
  /** The project may not send. */
  suspended: "sender_suspended",
  /** The From domain has lost its records: its present owner may not have allowed us to send. */
  unverified: "domain_not_verified",
  /** Its broadcast is paused, for as long as that is. */
  paused: "broadcast_paused",
} as const;

/** Time after which held mail is checked again, milliseconds. */
export const HOLD_MS = 120_000;

const REASONS: ReadonlySet<string | null> = new Set(Object.values(HELD_FOR));

/** Returns true if a recipient with that reason is held. */
export function isHeldFor(reason: string | null): boolean {
  return REASONS.has(reason);
}

/** Returns the statement that puts a due recipient off to `dueAt` without a try, with the reason. */
export function holdRecipient(
  { messageId, ord, attempts }: TriedKey,
  reason: string,
  dueAt: number,
  now: number,
): Statement {
  return {
    sql: `UPDATE recipients SET due_at = ?, reason = ? WHERE ${IS_DUE}`,
    args: [dueAt, reason, messageId, ord, now, attempts],
  };
}

/** The times of a hold. */
export interface Hold {
  now: number;
  /** When the held recipients are due again. */
  dueAt: number;
  /** Recipients whose last event is older than this have been held for long enough. */
  since: number;
}

/**
 * Puts off the recipients that are still held for the same reason, in one statement. A project may have some hundred
 * thousand: to claim each would keep the machine busy while they are held.
 * @returns those that were put off; the caller claims the rest
 */
export async function extendHolds(
  db: Db,
  recipients: readonly DueRecipient[],
  { now, dueAt, since }: Hold,
): Promise<Pick<DueRecipient, "messageId" | "ord">[]> {
  const [written] = await db.write([
    {
      sql: `UPDATE recipients SET due_at = ?1 WHERE (message_id, ord) IN (
          SELECT r.message_id, r.ord FROM json_each(?2) j
            CROSS JOIN recipients r ON r.message_id = j.value ->> 0 AND r.ord = j.value ->> 1
            CROSS JOIN messages m ON m.id = r.message_id
            LEFT JOIN senders p ON p.id = r.sender_id
            LEFT JOIN domains d
              ON d.id = ${domainOfName({ account: "p.account_id", project: "r.sender_id", name: FROM_DOMAIN })}
          WHERE r.due_at <= ?3 AND r.claimed_by IS NULL AND (COALESCE(r.last_event_at, ?3) > ?4 OR r.reason = '${HELD_FOR.paused}')
            AND CASE r.reason WHEN '${HELD_FOR.suspended}' THEN p.suspended_at IS NOT NULL
              WHEN '${HELD_FOR.unverified}' THEN d.status <> 'verified'
              WHEN '${HELD_FOR.paused}' THEN (SELECT b.status = 'paused' FROM broadcasts b WHERE b.id = m.template_id) END)
        RETURNING message_id AS messageId, ord`,
      args: [dueAt, JSON.stringify(recipients.map(({ messageId, ord }) => [messageId, ord])), now, since],
    },
  ]);
  return (written?.rows ?? []) as unknown as Pick<DueRecipient, "messageId" | "ord">[];
}
