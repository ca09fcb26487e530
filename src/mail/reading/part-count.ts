/** MIME parts of one mail: each takes memory, and a few octets are enough to make one. */
export const MAX_PARTS = 1000;
/** Octets of a line in which a boundary is looked for; RFC 2046 §5.1.1 allows 70. */
const MAX_LINE_OCTETS = 200;

const [LF, CR, DASH] = [0x0a, 0x0d, 0x2d];
const DASHED = Uint8Array.of(LF, DASH, DASH);

/**
 * An upper bound of the mail's parts: lines that begin with "--" and a boundary named anywhere in it. Counted before
 * the parse, for a mail of empty parts (a few octets each) would fill the memory with part objects.
 */
export function countParts(raw: Uint8Array): number {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  const dashed = countDashed(bytes);
  if (dashed <= MAX_PARTS) return dashed;
  const boundaries = namedBoundaries(bytes);
  if (boundaries.size === 0 || boundaries.size > MAX_PARTS) return boundaries.size;
  // A line that begins otherwise or has another length is none of them: that costs no memory, and there may be very many.
  const firsts = new Set([...boundaries].map((boundary) => boundary.charCodeAt(0)));
  const lengths = new Set([...boundaries].flatMap(({ length }) => [length, length + 2]));
  let parts = 0;
  for (let at = bytes.indexOf(DASHED); at >= 0 && parts <= MAX_PARTS; at = bytes.indexOf(DASHED, at + 1)) {
    if (!firsts.has(bytes[at + 3] ?? 0) && !boundaries.has("")) continue;
    const end = trimmedEnd(bytes, at + 3);
    if (lengths.has(end - at - 3) && isDelimiter(bytes.toString("latin1", at + 3, end), boundaries)) parts++;
  }
  return parts;
}

function countDashed(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(DASHED); at >= 0 && count <= MAX_PARTS; at = bytes.indexOf(DASHED, at + 1))
    count++;
  return count;
}

/** The boundaries named in the mail; one more than may be where there are more. */
function namedBoundaries(bytes: Buffer): Set<string> {
  const boundaries = new Set<string>();
  const text = bytes.toString("latin1");
  for (const match of text.matchAll(/boundary\*?0?\*?\s*=\s*(?:"([^"\r\n]{0,200})|([^\s";]{1,200}))/gi)) {
    boundaries.add(match[1] ?? match[2] ?? "");
    if (boundaries.size > MAX_PARTS) break;
  }
  return boundaries;
}

/** Where the line that goes on from there ends without the white space at its end. */
function trimmedEnd(bytes: Buffer, start: number): number {
  let end = start;
  const bound = Math.min(bytes.length, start + MAX_LINE_OCTETS);
  while (end < bound && bytes[end] !== LF && bytes[end] !== CR) end++;
  while (end > start && WHITE_SPACE.has(bytes[end - 1] ?? 0)) end--;
  return end;
}

const WHITE_SPACE: ReadonlySet<number> = new Set([0x09, 0x0b, 0x0c, 0x20, 0xa0]);

function isDelimiter(line: string, boundaries: ReadonlySet<string>): boolean {
  return boundaries.has(line) || (line.endsWith("--") && boundaries.has(line.slice(0, -2)));
}
