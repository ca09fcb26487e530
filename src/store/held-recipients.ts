import type { Db, Statement } from "./engine/client.ts";
import { FROM_DOMAIN } from "./mailbox.ts";
import { type DueRecipient, type TriedPlace, WAITS } from "./outbox.ts";

/** Why a recipient waits without a try: what may be put right meanwhile. Its mail goes out then. */
export const HELD_FOR = {
  /** The project may not send. */
  suspended: "sender_suspended",
  /** The From domain has lost its records: whoever owns the name by now has not let us send. */
  unverified: "domain_not_verified",
} as const;

/** Held mail is looked at again after so long, milliseconds. */
export const HOLD_MS = 120_000;

const REASONS: ReadonlySet<string | null> = new Set(Object.values(HELD_FOR));

/** Whether a recipient that waits with such a reason is held. */
export function isHeldFor(reason: string | null): boolean {
  return REASONS.has(reason);
}

/** Puts a due recipient off to `dueAt` without a try, and says why. */
export function holdRecipient(
  { messageId, ord, attempts }: TriedPlace,
  reason: string,
  dueAt: number,
  now: number,
): Statement {
  return {
    sql: `UPDATE recipients SET due_at = ?, reason = ? WHERE ${WAITS}`,
    args: [dueAt, reason, messageId, ord, now, attempts],
  };
}

/** A time of holding. */
export interface Hold {
  now: number;
  /** When what is held is due again. */
  dueAt: number;
  /** Recipients whose last event came by this time have been held for long enough. */
  since: number;
}

/**
 * Puts off those of the recipients that are still held for the same reason, all in one statement: a project may have some
 * hundred thousand, and to take up each would keep the machine busy for as long as they are held. Resolves with those; the
 * others are to be taken up.
 */
export async function holdOn(
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
            LEFT JOIN domains d ON d.account_id = p.account_id AND d.name = ${FROM_DOMAIN} AND d.sender_id = r.sender_id
          WHERE r.due_at <= ?3 AND r.claimed_by IS NULL AND COALESCE(r.last_event_at, ?3) > ?4
            AND CASE r.reason WHEN '${HELD_FOR.suspended}' THEN p.suspended_at IS NOT NULL
              WHEN '${HELD_FOR.unverified}' THEN d.status <> 'verified' END)
        RETURNING message_id, ord`,
      args: [dueAt, JSON.stringify(recipients.map(({ messageId, ord }) => [messageId, ord])), now, since],
    },
  ]);
  const rows = (written?.rows ?? []) as unknown as { message_id: string; ord: number }[];
  return rows.map(({ message_id, ord }) => ({ messageId: message_id, ord }));
}
