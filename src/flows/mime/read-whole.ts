import { headerBlock } from "../../mail/reading/header-block.ts";
import { parseMail } from "../../mail/reading/parse.ts";
import { isSimple, simpleTexts } from "../../mail/submitted/simple-texts.ts";
import type { MessageBody } from "../../store/contents/message-body.ts";
import { fieldsByName } from "../../mail/reading/shown-headers.ts";

/** Maximum bytes of a message that is parsed on the main thread, which takes some hundred microseconds. */
export const MAX_PARSED_HERE = 16 * 1024;

/**
 * Returns whether a submitted message is stored as it is, without a separate body. This holds if it is small and
 * has only text parts, as most do. Accepting then stores half as much, and `readWhole` reads the bodies when they
 * are shown.
 */
export function isStoredAlone(raw: Uint8Array): boolean {
  return raw.length <= MAX_PARSED_HERE && isSimple(raw);
}

/** Reads the body of such a message. */
export async function readWhole(raw: Uint8Array): Promise<MessageBody> {
  const { text, html } = simpleTexts(raw) ?? (await parseMail(raw));
  return { html, text, headers: fieldsByName(headerBlock(raw).fields) };
}
