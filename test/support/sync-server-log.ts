import { closeSync, openSync, readFileSync, readSync, existsSync } from "node:fs";

const WAL_HEADER = 32;
const FRAME_HEADER = 24;
const PAGE = 4096;
/** One frame of SQLite's log: its header and a page. */
export const FRAME = FRAME_HEADER + PAGE;

/**
 * The write-ahead log of a database without checkpoints: its committed frames, numbered from 1. The main file stays
 * as it was when the log began.
 */
export class Log {
  readonly #path: string;
  #committed = 0;
  #seen = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** The database file without its log. */
  base(): Buffer {
    return readFileSync(this.#path);
  }

  /** Number of the last frame of the last commit. */
  committed(): number {
    this.#read((descriptor, salts) => {
      const header = Buffer.alloc(FRAME_HEADER);
      for (;;) {
        const at = WAL_HEADER + this.#seen * FRAME;
        if (readSync(descriptor, header, 0, FRAME_HEADER, at) < FRAME_HEADER) return;
        // Frames of an earlier round of the log follow ours. Their salts differ.
        if (!header.subarray(8, 16).equals(salts)) return;
        this.#seen++;
        // The last frame of a commit holds the size of the database after it.
        if (header.readUInt32BE(4) > 0) this.#committed = this.#seen;
      }
    });
    this.#seen = this.#committed;
    return this.#committed;
  }

  /** Committed frames from `start` to before `end`. */
  frames(start: number, end: number): Buffer {
    const count = Math.min(end - 1, this.committed()) - start + 1;
    if (count <= 0) return Buffer.alloc(0);
    const bytes = Buffer.alloc(count * FRAME);
    this.#read((descriptor) => {
      readSync(descriptor, bytes, 0, bytes.length, WAL_HEADER + (start - 1) * FRAME);
    });
    return bytes;
  }

  #read(task: (descriptor: number, salts: Buffer) => void): void {
    if (!existsSync(`${this.#path}-wal`)) return;
    const descriptor = openSync(`${this.#path}-wal`, "r");
    try {
      const header = Buffer.alloc(WAL_HEADER);
      if (readSync(descriptor, header, 0, WAL_HEADER, 0) === WAL_HEADER)
        task(descriptor, header.subarray(16, 24));
    } finally {
      closeSync(descriptor);
    }
  }
}
