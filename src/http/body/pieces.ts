/** Bytes below which pieces are copied together. Each piece takes 150 bytes of memory in addition to its content. */
const SMALL_OCTETS = 4096;
/** Maximum bytes that are copied together. */
const RUN_OCTETS = 16 * 1024;

/** Bytes from which a body is copied into one buffer as it arrives. To join tens of MiB at the end would block the event loop. */
const WHOLE_FROM_OCTETS = 1024 * 1024;

/**
 * Gives the memory back at once that holds the bytes. A large body would otherwise take as much memory again until the
 * next collection.
 */
export function freeMemory({ buffer }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/** Collects the pieces of a body. They take about as much memory as they have bytes, even if each has only one. */
export class BodyPieces {
  readonly #most: number;
  readonly #pieces: Uint8Array[] = [];
  #run: Uint8Array | null = null;
  #used = 0;
  /** Buffer for the largest body, with all bytes so far; null while they are few. */
  #whole: Buffer | null = null;
  #size = 0;

  /** @param most maximum bytes of the body */
  constructor(most: number) {
    this.#most = most;
  }

  /** Bytes of all pieces. */
  get size(): number {
    return this.#size;
  }

  /** Takes over a piece. It is empty afterwards, if its bytes were copied into the buffer of a large body. */
  add(piece: Uint8Array): void {
    if (this.#whole === null && this.#size + piece.length > WHOLE_FROM_OCTETS) this.#beginWhole();
    const at = this.#size;
    this.#size += piece.length;
    if (this.#whole === null) this.#keep(piece);
    else {
      this.#whole.set(piece, at);
      if (piece.buffer.byteLength === piece.length) freeMemory(piece);
    }
  }

  join(): Uint8Array {
    if (this.#whole !== null) return this.#whole.subarray(0, this.#size);
    this.#endRun();
    return Buffer.concat(this.#pieces, this.#size);
  }

  /** Starts the one buffer. The system gives memory when it is written, so bytes that never arrive take none. */
  #beginWhole(): void {
    const begun = this.join();
    this.#whole = Buffer.allocUnsafeSlow(Math.max(this.#most, begun.length));
    this.#whole.set(begun);
    this.#pieces.length = 0;
    this.#run = null;
  }

  #keep(piece: Uint8Array): void {
    const isSmall = piece.length < SMALL_OCTETS;
    if (!isSmall || this.#used + piece.length > RUN_OCTETS) this.#endRun();
    if (isSmall) this.#copy(piece);
    else this.#pieces.push(piece);
  }

  #copy(piece: Uint8Array): void {
    this.#run ??= new Uint8Array(RUN_OCTETS);
    this.#run.set(piece, this.#used);
    this.#used += piece.length;
  }

  #endRun(): void {
    if (this.#run !== null && this.#used > 0) this.#pieces.push(this.#run.slice(0, this.#used));
    this.#used = 0;
  }
}
