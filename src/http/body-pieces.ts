/** Octets below which a piece is copied to others: one by itself takes some 150 more in memory, however small it is. */
const SMALL_OCTETS = 4096;
/** Octets that are copied together at most. */
const RUN_OCTETS = 16 * 1024;

/** The pieces of a body as they come. They take about as much memory as they have octets, even if each brings but one. */
export class BodyPieces {
  readonly #pieces: Uint8Array[] = [];
  #run: Uint8Array | null = null;
  #used = 0;
  #size = 0;

  /** Octets of all pieces. */
  get size(): number {
    return this.#size;
  }

  add(piece: Uint8Array): void {
    this.#size += piece.length;
    const isSmall = piece.length < SMALL_OCTETS;
    if (!isSmall || this.#used + piece.length > RUN_OCTETS) this.#endRun();
    if (isSmall) this.#copy(piece);
    else this.#pieces.push(piece);
  }

  /** All of them, joined. */
  join(): Uint8Array {
    this.#endRun();
    return Buffer.concat(this.#pieces, this.#size);
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
