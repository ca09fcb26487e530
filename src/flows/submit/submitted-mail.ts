import { addressKey, type Mailbox, normalizeAddress } from "../../core/addresses.ts";
import type { ReadItem } from "../../core/messages/send-item.ts";
import { type HeaderBlock, toHeaderField } from "../../mail/reading/header-block.ts";
import { mailboxes } from "../../mail/reading/parse.ts";
import type { RawField } from "../../mail/reading/raw-headers.ts";
import type { Controls } from "./controls.ts";

/** The recipients that a header names. */
export interface Addresses {
  to: Mailbox[];
  cc: Mailbox[];
}

/** Returns the recipients that the header names. The envelope decides who gets the message. */
export function addressesIn(fields: readonly RawField[]): Addresses {
  const list = (name: string): Mailbox[] => {
    const values = fields.filter((field) => field.name === name).map((field) => toHeaderField(field).value);
    return values.length === 0 ? [] : mailboxes(values.join(", "));
  };
  return { to: list("to"), cc: list("cc") };
}

/**
 * Makes the send item of a message, without its content. Its recipients are those of the envelope. One
 * that neither To nor Cc names is a blind copy.
 */
export function submittedItem(
  block: HeaderBlock,
  { from, replyTo }: { from: Mailbox; replyTo: Mailbox[] },
  { to, cc }: Addresses,
  recipients: readonly string[],
  { tags, track, unsubscribeLink, stream }: Controls,
): ReadItem {
  const named = new Map<string, { kind: "to" | "cc"; name: string | undefined }>();
  for (const [kind, list] of [
    ["to", to],
    ["cc", cc],
  ] as const)
    for (const { email, name } of list) {
      const key = addressKey(email);
      if (!named.has(key)) named.set(key, { kind, name });
    }
  const lists: Record<"to" | "cc" | "bcc", Mailbox[]> = { to: [], cc: [], bcc: [] };
  for (const address of recipients) {
    const email = normalizeAddress(address) ?? address;
    const known = named.get(addressKey(email));
    lists[known?.kind ?? "bcc"].push(known?.name === undefined ? { email } : { email, name: known.name });
  }
  return {
    from,
    ...lists,
    replyTo,
    subject: block.subject,
    headers: parentsOf(block),
    tags,
    unsubscribeLink,
    ...(stream === null ? {} : { stream }),
    ...(track === null ? {} : { tracking: { opens: track, clicks: track } }),
  };
}

/** Returns the fields that lead to the thread of the message. */
function parentsOf({ inReplyTo, references }: HeaderBlock): Record<string, string> {
  return {
    ...(inReplyTo === null ? {} : { "In-Reply-To": inReplyTo }),
    ...(references.length === 0 ? {} : { References: references.join(" ") }),
  };
}
