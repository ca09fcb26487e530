import type { Key } from "../../core/crypto/key-ring.ts";
import { addressKey } from "../../core/addresses.ts";
import { readMessageId } from "../../core/messages/message-id.ts";
import { rewrittenVerpToken } from "../../mail/verp.ts";
import { type Db, queryAfterSync } from "../../store/engine/client.ts";
import { findRecipient, type Recipient, recipientsOfRfcId } from "../../store/messages/recipients.ts";
import type { ReadReport } from "./read-report.ts";
import { type NamedRecipient, recipientOf } from "./recipient-token.ts";
import { namedInListUnsubscribe } from "./unsubscribe.ts";

/** The keys by which a message is known to be ours. */
export interface ComplaintKeys {
  verpKey: Key;
  unsubscribeKey: Key;
}

/** Returns the recipient that a token names, or null if it is gone. */
export function namedRecipient(db: Db, { messageId, ord }: NamedRecipient): Promise<Recipient | null> {
  return queryAfterSync(
    db,
    () => findRecipient(db, messageId, ord),
    (found) => found === null,
  );
}

/**
 * Returns the recipient of the message that a complaint is about; null if nothing in it is ours. Providers black out different fields, so a token
 * counts in each of them: return path, CFBL-Feedback-ID, List-Unsubscribe. Last comes the Message-ID.
 */
export async function complainedOf(
  deps: { db: Db } & ComplaintKeys,
  report: ReadReport,
): Promise<Recipient | null> {
  const named = byToken(deps, report);
  return named === null ? byMessageId(deps, report) : namedRecipient(deps.db, named);
}

function byToken(
  { verpKey, unsubscribeKey }: ComplaintKeys,
  { returnPaths, original }: ReadReport,
): NamedRecipient | null {
  const tokens = returnPaths.flatMap((path) => rewrittenVerpToken(path) ?? []);
  for (const token of [...tokens, original?.feedbackId ?? ""]) {
    const named = recipientOf(verpKey, token);
    if (named !== null) return named;
  }
  return namedInListUnsubscribe(unsubscribeKey, original?.listUnsubscribe ?? "");
}

/**
 * Finds the recipient by a Message-ID of ours. All recipients of a message know it, and so does each person whom it was forwarded to. So the
 * sender of the report must be proven, and of several recipients the Message-ID or the report must name one.
 */
async function byMessageId({ db }: { db: Db }, { end, original }: ReadReport): Promise<Recipient | null> {
  const own = readMessageId(original?.messageId ?? "");
  if (own === null || end?.authenticated !== true) return null;
  const recipients = await queryAfterSync(
    db,
    () => recipientsOfRfcId(db, own.id, own.shared),
    (found) => found.length === 0,
  );
  const keys = new Set((original?.recipients ?? []).map(addressKey));
  const meant = recipients
    .filter(({ ord }) => own.ord === null || ord === own.ord)
    .filter(({ email }) => keys.size === 0 || keys.has(addressKey(email)));
  return meant.length === 1 ? (meant[0] ?? null) : null;
}
