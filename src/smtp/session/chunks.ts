import { MessageBuffer, type MessageResult } from "./message-buffer.ts";
import type { MessageMemory } from "./message-memory.ts";
import { CR, indexOr, LF } from "./input-buffer.ts";

/**
 * Assembles one message from BDAT chunks (RFC 3030 §2), which have no dot-stuffing. We do not offer BINARYMIME, so a
 * chunk holds text: a CR or LF outside a CRLF is a fault, though one CRLF may span two chunks. If the message does not
 * end with a CRLF, one is added.
 */
export class ChunkReader {
  readonly #kept: MessageBuffer;
  /** True if the last octet so far is a CR, whose LF may come in the next piece. */
  #afterCr = false;
  #lineEnded = true;

  /** @param maxBytes octets of all chunks together */
  constructor(maxBytes: number, memory?: MessageMemory) {
    this.#kept = new MessageBuffer(maxBytes, memory);
  }

  /** Octets held in memory. */
  get held(): number {
    return this.#kept.held;
  }

  /** Octets of the chunks so far. */
  get size(): number {
    return this.#kept.size;
  }

  /** Frees the memory of a message that will not be completed. */
  discard(): void {
    this.#kept.discard();
  }

  feed(piece: Uint8Array): void {
    if (piece.length === 0) return;
    this.#checkLineEnds(piece);
    this.#kept.add(piece);
  }

  /** Ends a chunk. Returns null if more chunks follow, else the message or its fault. */
  end(last: boolean): MessageResult | null {
    if (last && this.#afterCr) this.#kept.foundBareLineEnd();
    if (last && !this.#lineEnded && !this.#afterCr) this.#kept.endLine();
    return last || this.#kept.faulty ? this.#kept.result() : null;
  }

  #checkLineEnds(piece: Uint8Array): void {
    let pos = 0;
    if (this.#afterCr) {
      if (piece[0] === LF) pos = 1;
      else this.#kept.foundBareLineEnd();
    }
    let cr = indexOr(piece, CR, pos);
    let lf = indexOr(piece, LF, pos);
    while (lf === cr + 1 && lf < piece.length) {
      cr = indexOr(piece, CR, lf + 1);
      lf = indexOr(piece, LF, lf + 1);
    }
    // The run of CRLFs ends at the end of the piece, at a CR there whose LF may follow, or at a bare CR or LF.
    if (lf < piece.length || cr < piece.length - 1) this.#kept.foundBareLineEnd();
    this.#afterCr = piece[piece.length - 1] === CR;
    this.#lineEnded = piece[piece.length - 1] === LF;
  }
}
