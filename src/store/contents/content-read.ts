import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import { type HashedContent, CHUNK_OCTETS, chunkCount, decoded } from "./content-bytes.ts";
import type { ContentEncoding } from "../sql/content-values.ts";
import type { Db } from "../engine/client.ts";
import { type MemoryBudget, reservedBudget } from "./memory-budget.ts";

/** Reads contents from the object store. */
export interface ObjectReader {
  /**
   * Returns the bytes as they were stored in the database. Throws if they cannot be read.
   * @param size bytes of the content as read
   */
  read(object: string, size: number): Promise<Uint8Array>;
}

/** The places that contents are read from. */
export interface Contents {
  db: Db;
  /** Absent or null if all contents are in the database. */
  objects?: ObjectReader | null;
}

export interface StoredContent {
  key: Uint8Array;
  /** Bytes as they are read. */
  size: number;
  encoding: ContentEncoding;
  storedIn: "row" | "chunks" | "object";
  object: string | null;
  /** The encoded bytes; null unless they are in the row. */
  bytes: Uint8Array | null;
}

/** Columns of a content, selected from `contents b`. `b_key` is NULL if an outer join found none. */
export const CONTENT_COLUMNS =
  "b.key AS b_key, b.size AS b_size, b.encoding AS b_encoding, b.stored_in AS b_stored_in, b.object AS b_object, b.bytes AS b_bytes";

export interface ContentRow {
  b_key: ArrayBuffer | null;
  b_size: number;
  b_encoding: ContentEncoding;
  b_stored_in: StoredContent["storedIn"];
  b_object: string | null;
  b_bytes: ArrayBuffer | null;
}

/** Returns a stored content for a further message that refers to it. If it is gone by then, the write is undone with `content_gone`. */
export function sharedContent(content: StoredContent | null): HashedContent | null {
  return content === null ? null : { ...content, bytes: null };
}

/** Returns the content in a row, or null if there is none. */
export function contentIn(row: ContentRow): StoredContent | null {
  if (row.b_key === null) return null;
  return {
    key: new Uint8Array(row.b_key),
    size: row.b_size,
    encoding: row.b_encoding,
    storedIn: row.b_stored_in,
    object: row.b_object,
    bytes: row.b_bytes === null ? null : new Uint8Array(row.b_bytes),
  };
}

/** Chunks read at a time: 1 MiB. */
const CHUNKS_PER_READ = 4;

/**
 * Returns the bytes of memory that reading a content in pieces needs: those of one read, and those of the read before that
 * the caller still holds.
 */
export function octetsHeld({ storedIn, size }: StoredContent): number {
  return storedIn === "chunks" ? Math.min(size, 2 * CHUNKS_PER_READ * CHUNK_OCTETS) : size;
}

/** Reads a content in pieces. Throws if it is incomplete. */
export async function* contentPieces(
  deps: Contents,
  content: StoredContent,
  budget: MemoryBudget,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (content.storedIn !== "chunks") {
    yield await inOnePiece(deps, content, budget);
    return;
  }
  const count = chunkCount(content.size);
  for (let from = 0; from < count; from += CHUNKS_PER_READ) {
    const wanted = Math.min(CHUNKS_PER_READ, count - from);
    const chunks = await readChunks(deps.db, content, from, wanted, budget);
    if (chunks.length < wanted) {
      // The content moved to the object store after its row was read: read the rest from there.
      const moved = await inOnePiece(deps, await again(deps.db, content), budget);
      yield moved.subarray(from * CHUNK_OCTETS);
      return;
    }
    for (const chunk of chunks) yield decoded(chunk, content.encoding);
    // Reads of a database file do not yield by themselves.
    await yieldToEventLoop();
  }
}

/** Reads a whole content. Throws if it is incomplete. */
export async function contentBytes(
  deps: Contents,
  content: StoredContent,
  budget: MemoryBudget,
): Promise<Uint8Array> {
  if (content.storedIn !== "chunks") return inOnePiece(deps, content, budget);
  return budget.hold(content.size, async () => {
    const whole = new Uint8Array(content.size);
    let at = 0;
    for await (const piece of contentPieces(deps, content, reservedBudget())) {
      whole.set(piece, at);
      at += piece.length;
    }
    return whole;
  });
}

/** Reads the bytes of a content in the range [from, to). If it is in chunks, reads only the chunks of the range. */
export async function contentRange(
  deps: Contents,
  content: StoredContent,
  from: number,
  to: number,
  budget: MemoryBudget,
): Promise<Uint8Array> {
  if (content.storedIn !== "chunks") return (await inOnePiece(deps, content, budget)).subarray(from, to);
  const first = Math.floor(from / CHUNK_OCTETS);
  const count = Math.max(0, chunkCount(to) - first);
  const chunks = await readChunks(deps.db, content, first, count, budget);
  // The content moved to the object store after its row was read.
  if (chunks.length < count) return contentRange(deps, await again(deps.db, content), from, to, budget);
  const before = first * CHUNK_OCTETS;
  return Buffer.concat(chunks.map((chunk) => decoded(chunk, content.encoding))).subarray(
    from - before,
    to - before,
  );
}

async function readChunks(
  db: Db,
  { key }: StoredContent,
  from: number,
  count: number,
  budget: MemoryBudget,
): Promise<Uint8Array[]> {
  const rows = await budget.hold(count * CHUNK_OCTETS, () =>
    db.all<{ bytes: ArrayBuffer }>(
      "SELECT bytes FROM content_chunks WHERE key = ? AND ord >= ? ORDER BY ord LIMIT ?",
      [key, from, count],
    ),
  );
  return rows.map(({ bytes }) => new Uint8Array(bytes));
}

async function inOnePiece(
  { objects }: Contents,
  { size, storedIn, bytes, object, encoding }: StoredContent,
  budget: MemoryBudget,
): Promise<Uint8Array> {
  if (storedIn === "row" && bytes !== null)
    return budget.hold(size, async () => whole(decoded(bytes, encoding), size));
  if (storedIn !== "object" || object === null) throw new Error("a content is incomplete");
  if (objects == null) throw new Error("a content is in the object store, and none is configured");
  return budget.hold(size, async () => whole(decoded(await objects.read(object, size), encoding), size));
}

/** Checks the size, because an object store may answer 200 with fewer bytes. They must not be sent or shown. */
function whole(bytes: Uint8Array, size: number): Uint8Array {
  if (bytes.length !== size) throw new Error(`a content is incomplete: ${bytes.length} of ${size} octets`);
  return bytes;
}

async function again(db: Db, { key }: StoredContent): Promise<StoredContent> {
  const row = await db.first<ContentRow>(`SELECT ${CONTENT_COLUMNS} FROM contents b WHERE b.key = ?`, [key]);
  const found = row === null ? null : contentIn(row);
  if (found === null) throw new Error("a content is gone");
  return found;
}
