import type { ParsedAttachment } from "../../mail/reading/parse.ts";
import { openMail } from "../../mail/reading/parse.ts";
import { type HashedBody, hashedBody } from "../receive/inspect.ts";

/** A submitted message, and its header fields as the record shows them. */
export interface SubmittedToRead {
  raw: Uint8Array;
  headers: Record<string, string>;
}

/** The parts of a submitted message as the record shows them. */
export interface SubmittedParts {
  attachments: Omit<ParsedAttachment, "bytes">[];
  contents: HashedBody;
  /** The first characters of the texts. */
  text: string | null;
  html: string | null;
}

/** Parses a submitted message. Blocks the thread. */
export async function readSubmitted({ raw, headers }: SubmittedToRead): Promise<SubmittedParts> {
  const { text, html, attachments } = await openMail(raw);
  return {
    attachments,
    contents: hashedBody({ html, text, replyText: null, headers }),
    text: text?.beginning ?? null,
    html: html?.beginning ?? null,
  };
}

/** Returns the parts of a message that cannot be read: none. */
export function unreadSubmitted({ headers }: SubmittedToRead): SubmittedParts {
  const contents = hashedBody({ html: null, text: null, replyText: null, headers });
  return { attachments: [], contents, text: null, html: null };
}
