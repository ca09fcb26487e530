import { KeptMessage, type MessageResult } from "./kept-message.ts";
import type { MessageMemory } from "./message-memory.ts";
import { CR, indexOr, LF } from "./octets.ts";

/**
 * Puts one message together from the chunks of BDAT (RFC 3030 §2), which have no stuffed dots. BINARYMIME is not
 * offered, so a chunk holds text: a CR or LF outside a CRLF, though the two may come in two chunks, makes it a refused
 * message. One that would not end with a line end gets it.
 */
export class ChunkReader {
  readonly #kept: KeptMessage;
  /** Whether the last octet so far is a CR, whose LF is to come. */
  #afterCr = false;
  #lineEnded = true;

  /** `maxBytes`: octets of all chunks together. */
  constructor(maxBytes: number, memory?: MessageMemory) {
    this.#kept = new KeptMessage(maxBytes, memory);
  }

  /** Octets held in memory. */
  get held(): number {
    return this.#kept.held;
  }

  /** Octets of the chunks so far. */
  get size(): number {
    return this.#kept.size;
  }

  /** Lets go of a message that will not end. */
  discard(): void {
    this.#kept.discard();
  }

  /** Takes a piece of a chunk. */
  feed(piece: Uint8Array): void {
    if (piece.length === 0) return;
    this.#checkLineEnds(piece);
    this.#kept.add(piece);
  }

  /** The end of a chunk: what is wrong with the message, or the whole of it; null where more is to come. */
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
    // What ends the run of CRLFs is the end, or a CR there, whose LF may come in the next piece; or a bare one.
    if (lf < piece.length || cr < piece.length - 1) this.#kept.foundBareLineEnd();
    this.#afterCr = piece[piece.length - 1] === CR;
    this.#lineEnded = piece[piece.length - 1] === LF;
  }
}
