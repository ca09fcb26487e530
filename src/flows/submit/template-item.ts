import { invalid } from "../../core/errors.ts";
import type { ReadItem, SendAttachment } from "../../core/messages/send-item.ts";
import {
  isReservedHeader,
  MAX_CUSTOM_HEADERS,
  MAX_HEADER_NAME_CHARS,
} from "../../core/messages/send-rules.ts";
import type { HeaderBlock } from "../../mail/reading/header-block.ts";
import { partBytes } from "../../mail/reading/parse.ts";
import { tooManyReads } from "../../store/contents/large-reads.ts";
import type { Inspect } from "../mime/reading-tasks.ts";
import type { SubmittedParts } from "../mime/read-submitted.ts";
import { MAX_PARSED_HERE } from "../mime/read-whole.ts";

export interface TemplateDeps {
  inspect: Inspect;
  limits: { maxAttachments: number };
}

/** A message whose bodies a template replaces. */
export interface TemplateMail {
  item: ReadItem;
  block: HeaderBlock;
  raw: Uint8Array;
  attachments: SubmittedParts["attachments"];
}

/**
 * Returns the send item of a message whose bodies a template replaces. Its files and its header fields are kept,
 * and its subject if there is one, as for a posted item.
 * @throws AppError 422 if it has too many files
 */
export async function templateItem(
  deps: TemplateDeps,
  { item, block, raw, attachments: files }: TemplateMail,
  template: { templateId: string; data: Record<string, unknown> | null },
): Promise<ReadItem> {
  const { maxAttachments } = deps.limits;
  if (files.length > maxAttachments)
    throw invalid("attachments", `must have at most ${maxAttachments} attachments.`, "invalid_attachment");
  const attachments: SendAttachment[] = [];
  for (const [ord, { filename, contentType, contentId, disposition }] of files.entries()) {
    const content = Buffer.from(await bytesOf(deps, raw, ord)).toString("base64");
    attachments.push({ filename, contentType, disposition, content, ...(contentId ? { contentId } : {}) });
  }
  const own = block.fields
    .filter(({ name }) => !isReservedHeader(name) && name.length <= MAX_HEADER_NAME_CHARS)
    .slice(0, MAX_CUSTOM_HEADERS);
  return {
    ...item,
    headers: Object.fromEntries(own.map(({ name, value }) => [name, value])),
    attachments,
    templateId: template.templateId,
    ...(template.data === null ? {} : { data: template.data }),
  };
}

async function bytesOf({ inspect }: TemplateDeps, raw: Uint8Array, ord: number): Promise<Uint8Array> {
  if (raw.length <= MAX_PARSED_HERE) return (await partBytes(raw, ord)) ?? new Uint8Array();
  const part = await inspect({ kind: "attachment", raw, ord });
  if (part === null) throw tooManyReads();
  return part.bytes ?? new Uint8Array();
}
