import { DataReader } from "./data.ts";
import type { InputBuffer } from "./input-buffer.ts";
import { AMBIGUOUS, type MessageResult } from "./message-buffer.ts";
import { type Reply, reply } from "./reply.ts";
import type { Chunk, SessionLimits } from "./verbs.ts";

/**
 * The end of the octets: a message or its fault, or a reply if there is no message yet. `ambiguous`: the fault may be
 * read as the end of the message, so the session ends.
 */
export type InputEnd = { result: MessageResult; ambiguous: boolean } | { reply: Reply };

/** Octets of a message as they come. */
export interface MessageInput {
  /** Octets in memory; null if the transaction counts them. */
  readonly held: number | null;
  /** False if the octets belong to a refused chunk. */
  readonly isMessage: boolean;
  /** Reads what has come. Returns null if more will come. */
  read(input: InputBuffer): InputEnd | null;
  /** Frees the memory. */
  discard(): void;
}

/** Reads the message after DATA. */
export function messageAfterData({ maxMessageBytes, memory }: SessionLimits): MessageInput {
  const reader = new DataReader(maxMessageBytes, memory);
  return {
    get held() {
      return reader.held;
    },
    isMessage: true,
    read(input) {
      let ended = false;
      input.take((bytes) => {
        const end = reader.feed(bytes, 0);
        ended = end >= 0;
        return ended ? end : bytes.length;
      });
      if (!ended) return null;
      const result = reader.result();
      return { result, ambiguous: "fault" in result && AMBIGUOUS.has(result.fault) };
    },
    discard: () => reader.discard(),
  };
}

/** Reads the octets of one chunk after BDAT. */
export function chunkAfterBdat({ size, last, into }: Chunk): MessageInput {
  let left = size;
  return {
    held: null,
    isMessage: "feed" in into,
    read(input) {
      input.take((bytes) => {
        const piece = bytes.subarray(0, left);
        left -= piece.length;
        if ("feed" in into) into.feed(piece);
        return piece.length;
      });
      if (left > 0) return null;
      if ("code" in into) return { reply: into };
      const result = into.end(last);
      return result === null
        ? { reply: reply(250, "2.0.0", `${size} octets received`) }
        : { result, ambiguous: false };
    },
    // The transaction discards its chunks.
    discard: () => undefined,
  };
}
