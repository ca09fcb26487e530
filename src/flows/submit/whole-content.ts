import { newId } from "../../core/ids.ts";
import type { HeaderBlock } from "../../mail/reading/header-block.ts";
import type { SubmittedHeader } from "../../mail/submitted/header.ts";
import type { Envelope } from "../../smtp/session/envelope.ts";
import { type ByteSource, CHUNK_OCTETS, type NewContent } from "../../store/contents/content-bytes.ts";
import { type PrepareDeps, prepareBody, prepareContent } from "../../store/messages/prepare-content.ts";
import { tooManyReads } from "../../store/contents/large-reads.ts";
import { fieldsByName } from "../../mail/reading/shown-headers.ts";
import { storeBody } from "../receive/store-inbound.ts";
import type { SendContent } from "../accept/content.ts";
import type { Inspect } from "../mime/reading-tasks.ts";
import { readSmall, type SubmittedParts } from "../mime/read-submitted.ts";
import { isStoredAlone, MAX_PARSED_HERE, readWhole } from "../mime/read-whole.ts";

/**
 * Parses a submitted message, a large one on a thread. Returns null if it is stored alone.
 * @throws AppError 503 if too many messages wait
 */
export async function partsOf(
  { inspect }: { inspect: Inspect },
  raw: Uint8Array,
  block: HeaderBlock,
): Promise<SubmittedParts | null> {
  if (isStoredAlone(raw)) return null;
  const asked = { raw, headers: fieldsByName(block.fields) };
  if (raw.length <= MAX_PARSED_HERE) return readSmall(asked);
  const parts = await inspect({ kind: "submitted", ...asked });
  if (parts === null) throw tooManyReads();
  return parts;
}

export interface WholeMessage {
  raw: Uint8Array;
  header: SubmittedHeader;
  block: HeaderBlock;
  /** Null if it is stored alone. */
  parts: SubmittedParts | null;
  envelope: Envelope;
}

/**
 * Returns the content of a send that is kept whole: the bytes to send, and the bodies that the record shows unless
 * they are read from the bytes.
 */
export function wholeContent({ raw, header, block, parts, envelope }: WholeMessage): SendContent {
  const isUnchanged = header.octets.length === header.body;
  const bytes = isUnchanged ? raw : joined(header.octets, raw.subarray(header.body));
  const { mailFrom, rcptTo, ip, helo, tls, smtpUtf8 } = envelope;
  const hasMessageId = header.kept.some(({ name }) => name === "message-id");
  return {
    mayWriteAhead: () => bytes.length > CHUNK_OCTETS,
    texts: async () => parts ?? readWhole(raw),
    async keep(deps, owner, now) {
      const files = parts?.attachments ?? [];
      return {
        body: parts === null ? null : await keepBody(deps, owner, parts),
        attachments: files.map((file) => ({ ...file, id: newId("att", now), content: null })),
        size: bytes.length,
        whole: {
          raw: await prepareContent(deps, owner, bytes),
          envelope: { mailFrom, rcptTo, ip, helo, tls, ...(smtpUtf8 ? { smtpUtf8 } : {}) },
          ...(hasMessageId ? { rfcMessageId: block.messageId } : {}),
        },
      };
    },
  };
}

function keepBody(deps: PrepareDeps, senderId: string, { contents }: SubmittedParts): Promise<NewContent> {
  return "body" in contents ? storeBody(deps, senderId, contents) : prepareBody(deps, senderId, contents);
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
