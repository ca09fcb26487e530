import { gunzipSync, inflateRawSync } from "node:zlib";
import { decoderNamed } from "../decoding/charsets.ts";
import { zipEntries } from "./zip-entries.ts";

/** Maximum octets of an attachment that is unpacked. Reports of large domains have a few hundred kilobytes. */
export const MAX_PACKED_OCTETS = 4 * 1024 * 1024;
/** Maximum octets that are unpacked of one message: a report of about 12 000 sources. */
export const MAX_UNPACKED_OCTETS = 8 * 1024 * 1024;
/** Maximum ratio of unpacked to packed octets. Reports reach 60; a bomb of zeros has 1030. */
export const MAX_RATIO = 200;
/** Octets that are unpacked at any ratio. */
export const FREE_OCTETS = 64 * 1024;
/** Maximum number of packings one in the other, such as gzip in an archive. */
export const MAX_LAYERS = 2;
/** Octets in which an XML declaration names its encoding. */
const DECLARATION_OCTETS = 200;
const [CR, LF] = [0x0d, 0x0a];

/** The octets that may still be unpacked of a message. */
export interface Room {
  left: number;
}

/**
 * Returns the documents in an attachment: itself, or the files that are packed in it. Its octets decide, because its
 * name and type often lie. Leaves out files that exceed a limit or are damaged.
 */
export function textsIn(octets: Uint8Array, room: Room, layers = MAX_LAYERS): string[] {
  if (octets.length === 0 || octets.length > MAX_UNPACKED_OCTETS) return [];
  const files = unpacked(octets, room);
  if (files === null) return [decoded(octets)];
  return layers === 0 ? [] : files.flatMap((file) => textsIn(file, room, layers - 1));
}

/** Returns the files packed in an attachment; null if it is not packed. */
function unpacked(octets: Uint8Array, room: Room): Uint8Array[] | null {
  const [first, second] = octets;
  const isGzip = first === 0x1f && second === 0x8b;
  const isZip = first === 0x50 && second === 0x4b;
  if (!isGzip && !isZip) return null;
  if (octets.length > MAX_PACKED_OCTETS) return [];
  if (isGzip) return gunzipped(octets, room);
  return (zipEntries(octets) ?? []).flatMap(({ method, packed }) => {
    if (method === 0) return [packed];
    return method === 8 ? inflated(inflateRawSync, packed, room) : [];
  });
}

/** Unpacks gzip. A large filter service sends a line end after it, which zlib takes for another member. */
function gunzipped(packed: Uint8Array, room: Room): Uint8Array[] {
  const found = inflated(gunzipSync, packed, room);
  if (found.length > 0 || packed.at(-1) !== LF) return found;
  return inflated(gunzipSync, packed.subarray(0, packed.at(-2) === CR ? -2 : -1), room);
}

/** Unpacks within the limits. zlib stops there, whatever size the file claims. */
function inflated(inflate: typeof gunzipSync, packed: Uint8Array, room: Room): Uint8Array[] {
  const maxOutputLength = Math.min(room.left, Math.max(FREE_OCTETS, MAX_RATIO * packed.length));
  if (maxOutputLength <= 0) return [];
  try {
    const file = inflate(packed, { maxOutputLength });
    room.left -= file.length;
    return [file];
  } catch (error) {
    // Unpacking up to the limit was work as well.
    if (error instanceof RangeError) room.left -= maxOutputLength;
    return [];
  }
}

/** Decodes a document by its byte order mark or its XML declaration. Without either it is UTF-8. */
function decoded(octets: Uint8Array): string {
  const [first, second] = octets;
  const start = Buffer.from(octets.subarray(0, DECLARATION_OCTETS)).toString("latin1");
  const declared = /^\s*<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]{1,40})["']/.exec(start)?.[1] ?? "utf-8";
  const mark = first === 0xff && second === 0xfe ? "utf-16le" : null;
  // A declaration that can be read as ASCII is not in UTF-16, whatever it says.
  const name =
    first === 0xfe && second === 0xff ? "utf-16be" : (mark ?? declared.replace(/^utf-?16.*/i, "utf-8"));
  return (decoderNamed(name) ?? new TextDecoder()).decode(octets);
}
