/** Smaller contents are kept as they are: compressing them takes longer than writing what it saves. */
const MIN_COMPRESSED_OCTETS = 512;
/** What a compressed content may take, as a share of its own size: beyond that the time of reading it is not worth it. */
const WORTHWHILE = 0.9;
/** The fastest level: the next two save another twentieth. */
export const ZSTD_LEVEL = 1;

/** How bytes are kept. */
export type ContentEncoding = "plain" | "zstd";

/** A small content as its row keeps it. */
export interface ContentValues {
  /** See `projectKey`. */
  key: Uint8Array;
  encoding: ContentEncoding;
  bytes: Uint8Array;
}

/** What a project's small content is stored as. */
export function contentValues(senderId: string, plain: Uint8Array): ContentValues {
  return { key: projectKey(senderId, digestOf(plain)), ...storedBytes(plain) };
}

/** The SHA-256 of a content's bytes. */
export function digestOf(bytes: Uint8Array): Uint8Array {
  return Bun.SHA256.hash(bytes) as Uint8Array;
}

/**
 * The key of a project's content, by the SHA-256 of its bytes. Equal bytes of two projects are two contents: else the time
 * that keeping a large one takes would tell a project whether another has it.
 */
export function projectKey(senderId: string, digest: Uint8Array): Uint8Array {
  return new Bun.CryptoHasher("sha256").update(senderId).update(digest).digest();
}

/** Small bytes as they are stored. */
export function storedBytes(plain: Uint8Array): Pick<ContentValues, "encoding" | "bytes"> {
  const smaller = compressed(plain);
  return smaller === null ? { encoding: "plain", bytes: plain } : { encoding: "zstd", bytes: smaller };
}

/** Small bytes compressed; null where that saves too little. */
export function compressed(bytes: Uint8Array): Uint8Array | null {
  if (bytes.length < MIN_COMPRESSED_OCTETS) return null;
  const smaller = Bun.zstdCompressSync(bytes, { level: ZSTD_LEVEL });
  return encodingFor(bytes.length, smaller.length) === "plain" ? null : smaller;
}

/** How a content is to be stored that compressing makes as small as that. */
export function encodingFor(octets: number, compressedOctets: number): ContentEncoding {
  return compressedOctets > octets * WORTHWHILE ? "plain" : "zstd";
}
