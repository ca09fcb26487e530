import type { ParsedAttachment } from "../../mail/reading/parse.ts";
import { openMail, parseMail } from "../../mail/reading/parse.ts";
import type { MessageBody } from "../../store/contents/message-body.ts";
import { type HashedBody, hashedBody } from "./inspect.ts";

/** A submitted message, and its header fields as the record shows them. */
export interface SubmittedToRead {
  raw: Uint8Array;
  headers: Record<string, string>;
}

/** The parts of a submitted message as the record shows them. */
export interface SubmittedParts<Contents = HashedBody | MessageBody> {
  attachments: Omit<ParsedAttachment, "bytes">[];
  /** Hashed if the message was read on a worker thread. */
  contents: Contents;
  /** The first characters of the bodies. */
  text: string | null;
  html: string | null;
}

/** Parses a small submitted message here. */
export async function readSmall({ raw, headers }: SubmittedToRead): Promise<SubmittedParts> {
  const { text, html, attachments } = await parseMail(raw);
  return {
    attachments: attachments.map(({ bytes: _, ...file }: ParsedAttachment) => file),
    contents: { html, text, headers },
    text,
    html,
  };
}

/** Parses a submitted message. Blocks the thread. */
export async function readSubmitted({ raw, headers }: SubmittedToRead): Promise<SubmittedParts<HashedBody>> {
  const { text, html, attachments } = await openMail(raw);
  return {
    attachments,
    contents: hashedBody({ html, text, replyText: null, headers }),
    text: text?.beginning ?? null,
    html: html?.beginning ?? null,
  };
}

/** Returns the parts of a message that cannot be read: none. */
export function unreadSubmitted({ headers }: SubmittedToRead): SubmittedParts<HashedBody> {
  const contents = hashedBody({ html: null, text: null, replyText: null, headers });
  return { attachments: [], contents, text: null, html: null };
}
