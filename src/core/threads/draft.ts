import { type Static, Type } from "@sinclair/typebox";
import type { Issue } from "../errors.ts";
import { AddressList } from "../messages/address-input.ts";
import { decisiveFieldIssues } from "../messages/decisive-fields.ts";
import { SendItem } from "../messages/send-item.ts";

/** The fields of a draft: those of a send item, none of them required. */
export const DraftItem = Type.Object({
  ...Type.Partial(SendItem).properties,
  to: Type.Optional(AddressList()),
  replyAll: Type.Optional(
    Type.Boolean({ description: "Of a draft in a thread: also answers the other recipients." }),
  ),
  messageId: Type.Optional(
    Type.String({
      description: "Of a draft in a thread: the message that it answers. If absent: the newest inbound one.",
      examples: ["msg_01hzy8"],
    }),
  ),
});
export type DraftItem = Static<typeof DraftItem>;

const FIELDS: ReadonlySet<string> = new Set(Object.keys(DraftItem.properties));
/** Fields of a draft in a thread. The thread gives the rest. */
const IN_THREAD: ReadonlySet<string> = new Set([
  "to",
  "cc",
  "bcc",
  "subject",
  "text",
  "html",
  "templateId",
  "data",
  "attachments",
  "calendar",
  "headers",
  "tags",
  "undoSeconds",
  "replyAll",
  "messageId",
]);
const OUTSIDE_ONLY = [...FIELDS].filter((name) => !IN_THREAD.has(name));
const IN_THREAD_ONLY = ["replyAll", "messageId"] as const;

/** Returns the fields that a draft keeps. */
export function draftFields(body: DraftItem): DraftItem {
  return Object.fromEntries(Object.entries(body).filter(([name]) => FIELDS.has(name)));
}

/** Returns the issues of the fields of a draft, beyond their shape. */
export function draftIssues(body: DraftItem, inThread: boolean): Issue[] {
  const { threadId: _, ...item } = body as DraftItem & { threadId?: unknown };
  const stray = (inThread ? OUTSIDE_ONLY : IN_THREAD_ONLY).filter((name) => Object.hasOwn(item, name));
  const message = inThread
    ? "must be left out of a draft in a thread: the thread decides about it."
    : "must be left out of a draft without threadId.";
  return [...decisiveFieldIssues(item, FIELDS), ...stray.map((param) => ({ param, message }))];
}
