import { post } from "../../../api/client.ts";
import type { Inbox, Mailbox, Message } from "../../../api/types.ts";
import { offerUndo, UNDO_SECONDS } from "../../../state/undo.ts";
import { mailboxText } from "../../../words/addresses.ts";
import { quote } from "../../../words/quoting.ts";
import { localTime } from "../../../words/time.ts";

/** Adds the inbox's signature below what is written (RFC 3676 §4.3). */
export function signed(text: string, inbox: Inbox | undefined): string {
  const signature = inbox?.signature ?? "";
  return signature === "" ? text : `${text.trimEnd()}\n\n-- \n${signature}`.trimStart();
}

/** Returns a message as a reply quotes it. */
export function quoteOf({ addresses: { from }, createdAt, replyText, text }: Message): string {
  const written =
    replyText === undefined || replyText === null || replyText === "" ? (text ?? "") : replyText;
  return quote({ from: from.name ?? from.email, at: localTime(Date.parse(createdAt)), text: written });
}

/** Removes the quote and the signature, which a refused send leaves in a draft. */
export function withoutTail(text: string, target: Message, inbox: Inbox | undefined): string {
  let rest = text.trimEnd();
  for (const tail of [quoteOf(target).trimEnd(), signed("", inbox).trim()])
    if (tail !== "" && rest.endsWith(tail)) rest = rest.slice(0, -tail.length).trimEnd();
  return rest.length === text.trimEnd().length ? text : rest;
}

/** Recipients of a reply, as its fields hold them. */
export interface Recipients {
  to: string;
  cc: string;
}

/** Returns whom a reply goes to. @param all also to the other recipients, but not to the inbox itself */
export function recipientsOf(
  { addresses, direction }: Message,
  inbox: Inbox | undefined,
  all: boolean,
): Recipients {
  const { from, replyTo, to, cc } = addresses;
  const first = direction === "outbound" ? to : replyTo.length > 0 ? replyTo : [from];
  const taken = new Set(first.map(keyOf));
  const others = [...to, ...cc].filter((one) => {
    const key = keyOf(one);
    return !isOwn(one, inbox) && !taken.has(key) && taken.add(key);
  });
  return { to: first.map(mailboxText).join(", "), cc: all ? others.map(mailboxText).join(", ") : "" };
}

function keyOf({ email }: Mailbox): string {
  return email.toLowerCase();
}

/** Returns whether an address is the inbox's, also with a label after `+`, or one that a catch-all takes. */
function isOwn({ email }: Mailbox, inbox: Inbox | undefined): boolean {
  const [local = "", domain = ""] = (inbox?.address ?? "").toLowerCase().split("@");
  const [name = "", host = ""] = email.toLowerCase().split("@");
  return host === domain && (local === "*" || name === local || name.startsWith(`${local}+`));
}

/** Offers to take back a message that waits before it leaves. @param restore brings back what was written */
export function offerUndoOfSend(id: string, to: string, restore: () => Promise<void>): void {
  offerUndo({
    text: `Leaves in ${UNDO_SECONDS} seconds: to ${to}.`,
    undo: async () => {
      await post(`/v1/emails/${encodeURIComponent(id)}/cancel`);
      await restore();
    },
  });
}
