import { signal } from "@preact/signals";
import { get, post, put, remove } from "../api/client.ts";
import type { DraftRecord, Mailbox } from "../api/types.ts";
import { mailboxText } from "../words/addresses.ts";
import { parseData } from "../words/sample-data.ts";
import { addressField, attachmentsOf, type ChosenFile } from "./draft.ts";

/** Fields of the form of a reply. Recipients are strings as they are typed. */
export interface ReplyFields {
  to: string;
  cc: string;
  bcc: string;
  text: string;
  templateId: string;
  /** JSON object. */
  data: string;
  files: readonly ChosenFile[];
  /** Id of the message that it answers. Empty: the newest one. */
  messageId: string;
}

/** Returns whether nothing is written. */
export function isEmpty({ text, templateId, files }: ReplyFields): boolean {
  return text.trim() === "" && templateId === "" && files.length === 0;
}

/** Returns fields as the API takes them. */
export function bodyOf({ to, cc, bcc, text, templateId, data, files, messageId }: ReplyFields) {
  const attachments = attachmentsOf(files);
  return {
    ...addressField("to", to),
    ...addressField("cc", cc),
    ...addressField("bcc", bcc),
    ...(templateId === "" ? { text } : { templateId, data: parseData(data) ?? {} }),
    ...(attachments === undefined ? {} : { attachments }),
    ...(messageId === "" ? {} : { messageId }),
  };
}

/** Returns what a draft of the service holds, as the fields of a reply. @param first what the fields hold if it has nothing */
export function fieldsOf(record: DraftRecord, first: ReplyFields): ReplyFields {
  const { text, html, templateId, data, attachments, messageId } = record;
  const files = attachments?.map((file) => ({ ...file, size: Math.floor((file.content.length * 3) / 4) }));
  return {
    to: addressText(record.to) || first.to,
    cc: addressText(record.cc),
    bcc: addressText(record.bcc),
    text: text ?? textOf(html ?? ""),
    templateId: templateId ?? "",
    data: data === undefined ? "{}" : JSON.stringify(data, null, 2),
    files: files ?? [],
    messageId: messageId ?? first.messageId,
  };
}

type Addresses = DraftRecord["to"];

/** Returns addresses of a draft as a field holds them. */
export function addressText(addresses: Addresses): string {
  const all = addresses === undefined ? [] : Array.isArray(addresses) ? addresses : [addresses];
  return all.map((one: string | Mailbox) => (typeof one === "string" ? one : mailboxText(one))).join(", ");
}

/** Returns the words of html. The document that it makes runs nothing and loads nothing. */
export function textOf(html: string): string {
  return new DOMParser().parseFromString(html, "text/html").body.textContent.trim();
}

/** Counts the drafts that this tab has saved, sent or discarded. Lists of drafts read again when it changes. */
export const draftChanges = signal(0);

async function counted<Answer>(change: Promise<Answer>): Promise<Answer> {
  const answer = await change;
  draftChanges.value++;
  return answer;
}

/** A draft of the service at one of its versions. */
export type Saved = Pick<DraftRecord, "id" | "version">;

/** Returns the path of a draft in the API. */
function draftPath(id: string): string {
  return `/v1/drafts/${encodeURIComponent(id)}`;
}

/** Reads a draft with everything that is written. */
export function readDraft(id: string): Promise<DraftRecord> {
  return get<DraftRecord>(draftPath(id));
}

/** Stores a draft of a thread. @param saved the version that it replaces; null: it is a new draft */
export function storeDraft(
  threadId: DraftRecord["threadId"],
  saved: Saved | null,
  body: object,
  keepalive = false,
): Promise<DraftRecord> {
  return counted(
    saved === null
      ? post("/v1/drafts", { threadId, ...body }, { keepalive })
      : put(draftPath(saved.id), { ...body, version: saved.version }, { keepalive }),
  );
}

/** Deletes a draft. */
export function discardDraft(id: string): Promise<unknown> {
  return counted(remove(draftPath(id)));
}

/** Sends a draft, which ends it. Returns the id of the message. A repeated call has no further effect. */
export function sendDraft({ id, version }: Saved): Promise<{ id: string }> {
  return counted(post(`${draftPath(id)}/send`, { version }, { idempotencyKey: `ui-${id}-${version}` }));
}
