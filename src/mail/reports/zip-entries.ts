/** Maximum number of files in an archive. Reports are archives of one file. */
export const MAX_ENTRIES = 5;
/** Octets of the records of a ZIP file without their names (APPNOTE.TXT §4.3.7, §4.3.12 and §4.3.16). */
const LOCAL_OCTETS = 30;
const CENTRAL_OCTETS = 46;
const END_OCTETS = 22;
const END_SIGNATURE = 0x06054b50;
const CENTRAL_SIGNATURE = 0x02014b50;
/** Longest comment after the end record. */
const MAX_COMMENT_OCTETS = 0xffff;

/** A file of an archive, still packed. */
export interface ZipEntry {
  /** 0: stored, 8: deflated. */
  method: number;
  packed: Uint8Array;
}

/**
 * Returns the files of a ZIP archive by its central directory; null if it is none, or has too many. The sizes in an archive
 * are claims of its sender, so none of them reserves memory.
 */
export function zipEntries(archive: Uint8Array): ZipEntry[] | null {
  const view = new DataView(archive.buffer, archive.byteOffset, archive.byteLength);
  const end = endRecord(view);
  if (end === null) return null;
  const count = view.getUint16(end + 10, true);
  if (count > MAX_ENTRIES) return null;
  const entries: ZipEntry[] = [];
  let at = view.getUint32(end + 16, true);
  for (let index = 0; index < count; index++) {
    if (at + CENTRAL_OCTETS > end || view.getUint32(at, true) !== CENTRAL_SIGNATURE) return null;
    const local = view.getUint32(at + 42, true);
    if (local + LOCAL_OCTETS > end) return null;
    const start = local + LOCAL_OCTETS + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    const size = view.getUint32(at + 20, true);
    entries.push({ method: view.getUint16(at + 10, true), packed: archive.subarray(start, start + size) });
    const [name, extra, comment] = [28, 30, 32].map((field) => view.getUint16(at + field, true));
    at += CENTRAL_OCTETS + (name ?? 0) + (extra ?? 0) + (comment ?? 0);
  }
  return entries;
}

/** Finds the record at the end of an archive. A comment may follow it. */
function endRecord(view: DataView): number | null {
  const last = view.byteLength - END_OCTETS;
  for (let at = last; at >= Math.max(0, last - MAX_COMMENT_OCTETS); at--)
    if (view.getUint32(at, true) === END_SIGNATURE) return at;
  return null;
}
