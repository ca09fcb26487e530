import { Type } from "@sinclair/typebox";
import { FOLDERS, MAX_LABEL_CHARS, MAX_LABELS } from "../../core/messages/mailbox.ts";
import type { Db } from "../../store/engine/client.ts";
import { type NamedThread, withNames } from "../../store/threads/participant-names.ts";
import type { Thread } from "../../store/threads/threads.ts";
import { Nullable, OneOf, showTime, Timestamp } from "../routing/schemas.ts";
import { DATE_TIME } from "../routing/shown-format.ts";

/** Labels that a request gives. `requireDistinct` checks the rest. */
export function Labels(description: string) {
  return Type.Array(
    Type.String({
      minLength: 1,
      maxLength: MAX_LABEL_CHARS,
      pattern: "^(?! )[^\\u0000-\\u001f\\u007f]*[^\\u0000-\\u001f\\u007f ]$",
      meaning: "one line without a space at its ends",
      examples: ["billing"],
    }),
    { maxItems: MAX_LABELS, description },
  );
}

export const ThreadSchema = Type.Object(
  {
    id: Type.String(),
    inboxId: Type.String(),
    senderId: Type.String(),
    subject: Type.String(),
    preview: Type.String({ description: "First characters of the last message." }),
    participants: Type.Array(Type.String()),
    participantNames: Type.Record(Type.String(), Type.String(), {
      description:
        "Display names that recent messages give to participants, by address. Anyone can write any name, so show the address next to it.",
      examples: [{}],
    }),
    messageCount: Type.Integer(),
    hasAttachments: Type.Boolean(),
    lastMessageId: Nullable(Type.String()),
    lastMessageAt: Timestamp,
    lastInboundAt: Nullable(Timestamp),
    read: Type.Boolean({
      description: "False if a message has arrived since the thread was marked as read.",
    }),
    archived: Type.Boolean({
      description: "Archived threads are not listed unless asked for. New mail brings one back.",
    }),
    labels: Type.Array(Type.String({ examples: ["billing"] })),
    assigneeId: Nullable(
      Type.String({ description: "The member who takes care of it.", examples: ["mem_01hzy8"] }),
    ),
    folder: OneOf(FOLDERS),
    snoozedUntil: Nullable(
      Type.String({ ...DATE_TIME, description: "When a snoozed thread comes back.", examples: [null] }),
    ),
    deletesAt: Nullable(
      Type.String({
        ...DATE_TIME,
        description: "When a thread in spam or trash is deleted with its messages: after 30 days.",
        examples: [null],
      }),
    ),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { title: "Thread" },
);

/** Reads names for a thread and returns it as the API shows it. */
export async function showOneThread(
  db: Db,
  senderId: string,
  thread: Thread,
): Promise<Record<string, unknown>> {
  const [named] = await withNames(db, senderId, [thread]);
  return named === undefined ? {} : showThread(named);
}

/** Returns a thread as the API shows it. */
export function showThread({ folderUntil, ...thread }: NamedThread): Record<string, unknown> {
  const until = showTime(folderUntil);
  return {
    ...thread,
    snoozedUntil: thread.folder === "snoozed" ? until : null,
    deletesAt: thread.folder === "snoozed" ? null : until,
    lastMessageAt: showTime(thread.lastMessageAt),
    lastInboundAt: showTime(thread.lastInboundAt),
    createdAt: showTime(thread.createdAt),
    updatedAt: showTime(thread.updatedAt),
  };
}
