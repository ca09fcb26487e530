import { createHash } from "node:crypto";
import type { MailText } from "../../mail/reading/mail-text.ts";
import {
  CHUNK_OCTETS,
  decoded,
  type HashedContent,
  newContent,
  type ByteSource,
} from "../../store/contents/content-bytes.ts";
import { compressed, type ContentEncoding, encodingFor } from "../../store/sql/content-values.ts";
import { bodyEnd } from "../../store/contents/message-body.ts";

/** A chunk of a large body, compressed if that makes it smaller. */
export interface BodyChunk {
  bytes: Uint8Array;
  encoding: ContentEncoding;
}

/** The parts of a message's body. */
export interface LargeBody {
  html: MailText | null;
  text: MailText | null;
  replyText: string | null;
  headers: Record<string, string>;
}

/**
 * Encodes a body as `bodyBytes` does, but piece by piece, because at once it would take several times its size in
 * memory. A body that does not fit one chunk is returned in chunks.
 */
export function encodeBody({ html, text, replyText, headers }: LargeBody): {
  content: HashedContent;
  chunks: BodyChunk[] | null;
} {
  const writer = new ChunkWriter();
  const texts = [html?.pieces(), text?.pieces(), replyText === null ? undefined : [replyText]];
  const octets = texts.map((pieces) => (pieces === undefined ? null : writer.add(pieces)));
  writer.add([bodyEnd({ octets, headers })]);
  return writer.end();
}

/**
 * Chunks (4 MiB) after which the garbage collector runs. By itself it would wait for many times as much. A run takes a few
 * milliseconds on this thread, which only reads messages.
 */
const CHUNKS_BETWEEN_COLLECTIONS = 16;

/** Cuts text into the chunks that are stored. */
class ChunkWriter {
  readonly #hash = createHash("sha256");
  readonly #encoder = new TextEncoder();
  readonly #chunk = new Uint8Array(CHUNK_OCTETS);
  readonly #done: BodyChunk[] = [];
  #used = 0;

  /** Adds pieces of text. Returns their bytes. */
  add(pieces: Iterable<string>): number {
    const before = this.#size;
    for (const piece of pieces) this.#write(piece);
    return this.#size - before;
  }

  get #size(): number {
    return this.#done.length * CHUNK_OCTETS + this.#used;
  }

  #write(text: string): void {
    for (let rest = text; rest !== ""; ) {
      const { read, written } = this.#encoder.encodeInto(rest, this.#chunk.subarray(this.#used));
      this.#used += written;
      rest = rest.slice(read);
      // A character that does not fit is split between two chunks.
      if (rest !== "") rest = this.#cut(rest);
    }
  }

  /** Fills the chunk with the first bytes of the next character, and starts the next chunk with the rest. */
  #cut(text: string): string {
    const character = String.fromCodePoint(text.codePointAt(0) ?? 0);
    const octets = this.#encoder.encode(character);
    const room = CHUNK_OCTETS - this.#used;
    this.#chunk.set(octets.subarray(0, room), this.#used);
    this.#used = CHUNK_OCTETS;
    this.#finish();
    this.#chunk.set(octets.subarray(room));
    this.#used = octets.length - room;
    return text.slice(character.length);
  }

  #finish(): void {
    const bytes = this.#chunk.subarray(0, this.#used);
    this.#hash.update(bytes);
    const smaller = compressed(bytes);
    this.#done.push(
      smaller === null ? { bytes: bytes.slice(), encoding: "plain" } : { bytes: smaller, encoding: "zstd" },
    );
    this.#used = 0;
    if (this.#done.length % CHUNKS_BETWEEN_COLLECTIONS === 0) Bun.gc(true);
  }

  end(): { content: HashedContent; chunks: BodyChunk[] | null } {
    if (this.#done.length === 0)
      return { content: newContent(this.#chunk.slice(0, this.#used)), chunks: null };
    const size = this.#size;
    if (this.#used > 0) this.#finish();
    const stored = this.#done.reduce((sum, { bytes }) => sum + bytes.length, 0);
    const encoding = encodingFor(size, stored);
    return { content: { key: this.#hash.digest(), size, encoding, bytes: null }, chunks: this.#done };
  }
}

/** Returns the chunks as pieces of the whole body. */
export function chunkPieces(chunks: readonly BodyChunk[], length: number): ByteSource {
  const at = (from: number): BodyChunk =>
    chunks[from / CHUNK_OCTETS] ?? { bytes: new Uint8Array(0), encoding: "plain" };
  return {
    length,
    subarray: (from) => {
      const { bytes, encoding } = at(from);
      return decoded(bytes, encoding);
    },
    encoded: (from, encoding) => {
      const chunk = at(from);
      return chunk.encoding === encoding ? chunk.bytes : null;
    },
  };
}
