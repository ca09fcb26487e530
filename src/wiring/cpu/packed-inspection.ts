import type { Inspection } from "../../flows/mime/inspect.ts";
import type { Found, ReadingKind } from "../../flows/mime/reading-tasks.ts";
import type { HashedContent } from "../../store/contents/content-bytes.ts";
import type { Packed } from "./serve.ts";

/** Packs the result of reading a small message, with octets as Latin-1; returns null for any other. */
export function packedInspection(found: Found<ReadingKind>): Packed | null {
  if (!("authentication" in found)) return null;
  const { contents, ...rest } = found;
  const { body, raw, header, largeBody } = contents;
  if (body.bytes === null || raw.bytes === null || header !== null || largeBody !== null) return null;
  return {
    jsonText: JSON.stringify({ ...rest, body: sizeOf(body), raw: sizeOf(raw) }),
    bodyKeyText: text(body.key),
    bodyText: text(body.bytes),
    rawKeyText: text(raw.key),
    rawText: text(raw.bytes),
  };
}

/** Returns the result that `packedInspection` packed. */
export function unpackedInspection(packed: Packed): Inspection {
  const { jsonText = "", bodyKeyText, bodyText, rawKeyText, rawText } = packed;
  // The other thread is of this program, and has made it of an `Inspection`.
  const { body, raw, ...rest } = JSON.parse(jsonText);
  const contents = {
    header: null,
    largeBody: null,
    body: { ...body, key: octets(bodyKeyText), bytes: octets(bodyText) },
    raw: { ...raw, key: octets(rawKeyText), bytes: octets(rawText) },
  };
  return { ...rest, contents };
}

function sizeOf({ size, encoding }: HashedContent) {
  return { size, encoding };
}

function text({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString("latin1");
}

function octets(packed = ""): Uint8Array {
  return Buffer.from(packed, "latin1");
}
