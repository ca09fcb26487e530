import { newId } from "../../core/ids.ts";
import type { HeaderBlock } from "../../mail/reading/header-block.ts";
import type { SubmittedHeader } from "../../mail/submitted/header.ts";
import type { Envelope } from "../../smtp/envelope.ts";
import { type ByteSource, CHUNK_OCTETS } from "../../store/contents/content-bytes.ts";
import { prepareBody, prepareContent } from "../contents/prepare-content.ts";
import { tooManyReads } from "../read/large-reads.ts";
import { fieldsByName } from "../receive/shown-headers.ts";
import { storeBody } from "../receive/store-inbound.ts";
import type { SendContent } from "../send/content.ts";
import type { Inspect } from "../threads/reading-tasks.ts";
import { readSmall, type SubmittedParts } from "./read-submitted.ts";

/** Octets of a message that is parsed on the main thread, which takes some hundred microseconds. */
export const MAX_PARSED_HERE = 16 * 1024;

/** Parses a submitted message, a large one on a thread. Throws 503 if too many messages wait. */
export async function partsOf(
  { inspect }: { inspect: Inspect },
  raw: Uint8Array,
  block: HeaderBlock,
): Promise<SubmittedParts> {
  const asked = { raw, headers: fieldsByName(block.fields) };
  if (raw.length <= MAX_PARSED_HERE) return readSmall(asked);
  const parts = await inspect({ kind: "submitted", ...asked });
  if (parts === null) throw tooManyReads();
  return parts;
}

/** A message that is kept whole. */
export interface WholeMessage {
  raw: Uint8Array;
  header: SubmittedHeader;
  block: HeaderBlock;
  parts: SubmittedParts;
  envelope: Envelope;
}

/** Returns the content of a send that is kept whole: the bytes to send, and the texts that the record shows. */
export function wholeContent({ raw, header, block, parts, envelope }: WholeMessage): SendContent {
  const bytes = joined(header.octets, raw.subarray(header.body));
  const { mailFrom, rcptTo, ip, helo, tls, smtpUtf8 } = envelope;
  const hasMessageId = header.kept.some(({ name }) => name === "message-id");
  return {
    mayWriteAhead: () => bytes.length > CHUNK_OCTETS,
    async keep(deps, senderId, now) {
      const { contents } = parts;
      const body = await ("body" in contents
        ? storeBody(deps, senderId, contents)
        : prepareBody(deps, senderId, contents));
      return {
        body,
        attachments: parts.attachments.map((file) => ({ ...file, id: newId("att", now), content: null })),
        size: bytes.length,
        whole: {
          raw: await prepareContent(deps, senderId, bytes),
          envelope: { mailFrom, rcptTo, ip, helo, tls, ...(smtpUtf8 ? { smtpUtf8 } : {}) },
          ...(hasMessageId ? { rfcMessageId: block.messageId } : {}),
        },
      };
    },
  };
}

/** Joins header and body on demand, because a large body must not be in memory twice. */
function joined(header: Uint8Array, body: Uint8Array): ByteSource {
  return {
    length: header.length + body.length,
    subarray(from, to) {
      if (from >= header.length) return body.subarray(from - header.length, to - header.length);
      return Buffer.concat([header.subarray(from, to), body.subarray(0, Math.max(0, to - header.length))]);
    },
  };
}
