import { turn } from "../../core/turn.ts";
import { CHUNK_OCTETS, chunkCount, decoded } from "./content-bytes.ts";
import type { ContentEncoding } from "../engine/content-values.ts";
import type { Db } from "../engine/client.ts";

/** Where contents that have left the database are. */
export interface ObjectReader {
  /**
   * The bytes as they were in the database. Throws where they cannot be had.
   * @param size octets of the content as read
   */
  read(object: string, size: number): Promise<Uint8Array>;
}

/** What contents are read from. */
export interface ContentDeps {
  db: Db;
  /** Absent or null: all contents are in the database. */
  objects?: ObjectReader | null;
}

/** A content as found beside whoever names it. */
export interface StoredContent {
  key: Uint8Array;
  /** Octets as they are read. */
  size: number;
  encoding: ContentEncoding;
  place: "row" | "chunks" | "object";
  object: string | null;
  /** As stored; null unless the place is the row. */
  bytes: Uint8Array | null;
}

/** Columns of a content, to be selected from `contents` under the name `b`; `key` is NULL where the join found none. */
export const CONTENT_COLUMNS =
  "b.key AS b_key, b.size AS b_size, b.encoding AS b_encoding, b.place AS b_place, b.object AS b_object, b.bytes AS b_bytes";

/** A row with `CONTENT_COLUMNS`. */
export interface ContentRow {
  b_key: ArrayBuffer | null;
  b_size: number;
  b_encoding: ContentEncoding;
  b_place: StoredContent["place"];
  b_object: string | null;
  b_bytes: ArrayBuffer | null;
}

/** The content in a row; null where there is none. */
export function contentIn(row: ContentRow): StoredContent | null {
  if (row.b_key === null) return null;
  return {
    key: new Uint8Array(row.b_key),
    size: row.b_size,
    encoding: row.b_encoding,
    place: row.b_place,
    object: row.b_object,
    bytes: row.b_bytes === null ? null : new Uint8Array(row.b_bytes),
  };
}

/** Chunks read at a time: 1 MiB. */
const CHUNKS_PER_READ = 4;

/**
 * Octets in memory at a time of a content that is read in pieces, at most: what a read has brought, with as many of the one
 * before that its reader has still to hand on.
 */
export function heldOf({ place, size }: StoredContent): number {
  return place === "chunks" ? Math.min(size, 2 * CHUNKS_PER_READ * CHUNK_OCTETS) : size;
}

/** The bytes of a content in pieces, as they are read. Throws where they are not all there. */
export async function* contentPieces(
  deps: ContentDeps,
  content: StoredContent,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (content.place !== "chunks") {
    yield await inOnePiece(deps, content);
    return;
  }
  const count = chunkCount(content.size);
  for (let from = 0; from < count; from += CHUNKS_PER_READ) {
    const chunks = await readChunks(deps.db, content.key, from);
    if (chunks.length < Math.min(CHUNKS_PER_READ, count - from)) {
      // The rest, where it has left the database since its row was read.
      const moved = await inOnePiece(deps, await again(deps.db, content));
      yield moved.subarray(from * CHUNK_OCTETS);
      return;
    }
    for (const chunk of chunks) yield decoded(chunk, content.encoding);
    // Reading a file takes no turn of the event loop by itself.
    await turn();
  }
}

/** All bytes of a content. Throws where they are not all there. */
export async function contentBytes(deps: ContentDeps, content: StoredContent): Promise<Uint8Array> {
  if (content.place !== "chunks") return inOnePiece(deps, content);
  const whole = new Uint8Array(content.size);
  let at = 0;
  for await (const piece of contentPieces(deps, content)) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

async function readChunks(db: Db, key: Uint8Array, from: number): Promise<Uint8Array[]> {
  const rows = await db.all<{ bytes: ArrayBuffer }>(
    "SELECT bytes FROM content_chunks WHERE key = ? AND ord >= ? ORDER BY ord LIMIT ?",
    [key, from, CHUNKS_PER_READ],
  );
  return rows.map(({ bytes }) => new Uint8Array(bytes));
}

async function inOnePiece(
  { objects }: ContentDeps,
  { size, place, bytes, object, encoding }: StoredContent,
): Promise<Uint8Array> {
  if (place === "row" && bytes !== null) return whole(decoded(bytes, encoding), size);
  if (place !== "object" || object === null) throw new Error("a content is not whole");
  if (objects == null) throw new Error("a content is in the object store, and none is configured");
  return whole(decoded(await objects.read(object, size), encoding), size);
}

/** What is shorter must not go out as a mail, nor as an answer: a store may give less than it was given, and say 200. */
function whole(bytes: Uint8Array, size: number): Uint8Array {
  if (bytes.length !== size) throw new Error(`a content is not whole: ${bytes.length} of ${size} octets`);
  return bytes;
}

async function again(db: Db, { key }: StoredContent): Promise<StoredContent> {
  const row = await db.first<ContentRow>(`SELECT ${CONTENT_COLUMNS} FROM contents b WHERE b.key = ?`, [key]);
  const found = row === null ? null : contentIn(row);
  if (found === null) throw new Error("a content is gone");
  return found;
}
