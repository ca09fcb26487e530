/** Smaller contents are stored as they are: compressing them takes longer than writing the bytes it saves. */
const MIN_COMPRESSED_OCTETS = 512;
/** Size that compressing must reach, as a share of the plain size. Above it, reading costs more than is saved. */
const MAX_COMPRESSED_SHARE = 0.9;
/** The fastest level. The next two save another twentieth. */
export const ZSTD_LEVEL = 1;

/** The form in which bytes are stored. */
export type ContentEncoding = "plain" | "zstd";

/** A small content as its row stores it. */
export interface ContentValues {
  /** See `projectKey`. */
  key: Uint8Array;
  encoding: ContentEncoding;
  bytes: Uint8Array;
}

/** Returns the column values of a project's small content. */
export function contentValues(senderId: string, plain: Uint8Array): ContentValues {
  return { key: projectKey(senderId, digestOf(plain)), ...storedBytes(plain) };
}

/** Returns the SHA-256 of a content's bytes. */
export function digestOf(bytes: Uint8Array): Uint8Array {
  return Bun.SHA256.hash(bytes) as Uint8Array;
}

/**
 * Returns the key of a project's content from the SHA-256 of its bytes. Equal bytes of two projects are two contents.
 * Otherwise a project could learn from the time of storing a large content that another project has it.
 */
export function projectKey(senderId: string, digest: Uint8Array): Uint8Array {
  return new Bun.CryptoHasher("sha256").update(senderId).update(digest).digest();
}

/** Returns small bytes in the form in which they are stored. */
export function storedBytes(plain: Uint8Array): Pick<ContentValues, "encoding" | "bytes"> {
  const smaller = compressed(plain);
  return smaller === null ? { encoding: "plain", bytes: plain } : { encoding: "zstd", bytes: smaller };
}

/** Compresses small bytes. Returns null if that saves too little. */
export function compressed(bytes: Uint8Array): Uint8Array | null {
  if (bytes.length < MIN_COMPRESSED_OCTETS) return null;
  const smaller = Bun.zstdCompressSync(bytes, { level: ZSTD_LEVEL });
  return encodingFor(bytes.length, smaller.length) === "plain" ? null : smaller;
}

/** Returns the encoding for a content of a plain and a compressed size. */
export function encodingFor(octets: number, compressedOctets: number): ContentEncoding {
  return compressedOctets > octets * MAX_COMPRESSED_SHARE ? "plain" : "zstd";
}
