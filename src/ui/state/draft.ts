import { signal } from "@preact/signals";
import { base64Of } from "../api/base64.ts";
import { get, send } from "../api/client.ts";
import type { FileContent, Mailbox, Message, SendItem } from "../api/types.ts";
import { mailboxText, parseMailboxes } from "../words/addresses.ts";
import { parseData } from "../words/sample-data.ts";

export interface ChosenFile extends FileContent {
  /** Bytes. */
  size: number;
}

/** The first contents of the compose window. */
export interface Draft {
  from: string;
  to: string;
  cc: string;
  bcc: string;
  replyTo: string;
  subject: string;
  text: string;
  html: string;
  /** As a field of local time takes it. Empty: now. */
  scheduledAt: string;
  files: readonly ChosenFile[];
  /** Id of the template that makes the body. Empty: the body is `text` and `html`. */
  templateId: string;
  /** JSON object with the values of the template's variables. */
  data: string;
  tags: Message["tags"];
  headers: Message["headers"];
  /** Id of the message that is sent again. */
  again: string | null;
}

export const EMPTY_DRAFT: Draft = {
  from: "",
  to: "",
  cc: "",
  bcc: "",
  replyTo: "",
  subject: "",
  text: "",
  html: "",
  scheduledAt: "",
  files: [],
  templateId: "",
  data: "{}",
  tags: [],
  headers: {},
  again: null,
};

/** The draft that the next compose window takes up. */
export const draft = signal<Draft>(EMPTY_DRAFT);

/** Input that was neither sent nor saved, by the object that it belongs to. */
export const unsent = new Map<string, string>();

/** Replies that are being written, by the id of their thread, as `replyDraft` keeps them. */
export const openReplies = new Map<string, unknown>();

/** Forgets all that was not sent or saved, because the project or the session has changed. */
export function forgetDrafts(): void {
  draft.value = EMPTY_DRAFT;
  unsent.clear();
  openReplies.clear();
}

function listText(mailboxes: readonly Mailbox[]): string {
  return mailboxes.map(mailboxText).join(", ");
}

/** Returns a draft with everything that a sent message contained. */
export async function draftOf({ id }: { id: string }): Promise<Draft> {
  const message = await get<Message>(`/v1/emails/${encodeURIComponent(id)}`);
  const { addresses, subject, text, html, tags, headers } = message;
  return {
    subject,
    text: text ?? "",
    html: html ?? "",
    scheduledAt: "",
    templateId: "",
    data: "{}",
    tags,
    headers,
    again: id,
    from: mailboxText(addresses.from),
    to: listText(addresses.to),
    cc: listText(addresses.cc),
    bcc: listText(addresses.bcc),
    replyTo: listText(addresses.replyTo),
    files: await Promise.all(message.attachments.map((file) => readAttachment(id, file))),
  };
}

/** Returns the send that a draft describes. */
export function itemOf(draft: Draft): SendItem {
  const list = (name: "cc" | "bcc" | "replyTo") => addressField(name, draft[name]);
  const filled = (name: "subject" | "text" | "html") => (draft[name] === "" ? {} : { [name]: draft[name] });
  const { tags, headers, scheduledAt, templateId } = draft;
  const attachments = attachmentsOf(draft.files);
  return {
    from: parseMailboxes(draft.from)[0] ?? { email: "" },
    to: parseMailboxes(draft.to),
    ...list("cc"),
    ...list("bcc"),
    ...list("replyTo"),
    ...(templateId === ""
      ? { subject: draft.subject, ...filled("text"), ...filled("html") }
      : {
          templateId,
          data: (parseData(draft.data) ?? {}) as NonNullable<SendItem["data"]>,
          ...filled("subject"),
        }),
    ...(tags.length === 0 ? {} : { tags }),
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    ...(attachments === undefined ? {} : { attachments }),
    ...(scheduledAt === "" ? {} : { scheduledAt: new Date(scheduledAt).toISOString() }),
  };
}

/** Returns a field with the addresses in a string; no field if there are none. */
export function addressField(name: string, text: string): Record<string, Mailbox[]> {
  const mailboxes = parseMailboxes(text);
  return mailboxes.length === 0 ? {} : { [name]: mailboxes };
}

/** Returns files as a send carries them; undefined if there are none. */
export function attachmentsOf(files: readonly ChosenFile[]): FileContent[] | undefined {
  if (files.length === 0) return undefined;
  return files.map(({ size: _, ...file }) => file);
}

async function readAttachment(id: string, attachment: Message["attachments"][number]): Promise<ChosenFile> {
  const path = `/v1/emails/${encodeURIComponent(id)}/attachments/${encodeURIComponent(attachment.id)}`;
  const { filename, contentType, contentId, disposition, size } = attachment;
  const content = await base64Of(await (await send("GET", path)).blob());
  return { filename, content, contentType, disposition, size, ...(contentId === null ? {} : { contentId }) };
}
