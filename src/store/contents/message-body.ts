import { compressed, decoded, type NewContent } from "./content-bytes.ts";

/** What a message says, as one piece of bytes. */
export interface MessageBody {
  html: string | null;
  text: string | null;
  /** Of received mail, its new part; null where that is all of the text. */
  replyText?: string | null;
  /** Of received mail, the header fields that its record shows. */
  headers?: Record<string, string>;
}

/**
 * A body on its way into the store. A small one may stand in the message's own row, encoded: a content of its own costs
 * another statement and an entry at a random place of an index, which is worth it where several messages share it.
 */
export type NewBody = { inline: Uint8Array } | NewContent;

/** Octets of the largest body that stands in the message's row. */
export const MAX_INLINE_OCTETS = 16 * 1024;

/** The bytes of a body. A lone surrogate is no character, and becomes the replacement one as in every other text. */
export function bodyBytes({ html, text, ...more }: MessageBody): Uint8Array {
  const body = { html: html?.toWellFormed() ?? null, text: text?.toWellFormed() ?? null, ...more };
  return Buffer.from(JSON.stringify(body));
}

/** The body in those bytes. */
export function bodyIn(bytes: Uint8Array): MessageBody {
  return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString());
}

/** A body for the message's row. */
export function inlineBody(bytes: Uint8Array): NewBody {
  return { inline: compressed(bytes) ?? bytes };
}

/** With what JSON of a body begins, and no compressed bytes do. */
const BRACE = 0x7b;

/** The body that stands in a message's row. */
export function bodyInline(inline: Uint8Array): MessageBody {
  return bodyIn(inline[0] === BRACE ? inline : decoded(inline, "zstd"));
}

/** That of a message whose bodies are not there: it had none, or they have been let go of. */
export const NO_BODY: MessageBody = { html: null, text: null };
