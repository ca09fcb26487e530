import { CR, LF } from "../session/input-buffer.ts";

const DOT = 0x2e;
const DOT_OCTET = Buffer.from(".");
const LF_DOT = Buffer.from("\n.");
/** Ends a message whose last line ends with CRLF. */
const END = Buffer.from(".\r\n");
/** Ends a message whose last CRLF is missing. */
const CRLF_END = Buffer.from("\r\n.\r\n");

/**
 * Maximum number of slices of one message. Beyond that the rest is copied: a message may consist of lines with one dot.
 */
export const MAX_SLICES = 1000;

/** Ends DATA at once, with an empty message (RFC 2920 §3.1). */
export const EMPTY_DATA = END;

/**
 * Returns the message as sent after 354: a dot before each line that begins with one (RFC 5321 §4.5.2), and the final
 * dot. The result is slices of `raw`; only if very many lines begin with a dot, a part is copied.
 *
 * A dot after a bare LF is doubled too. If a peer accepts a bare LF as line end, it would otherwise see the end of the
 * message there, and read the rest as commands (SMTP smuggling).
 */
export function dotStuffed(raw: Uint8Array): Uint8Array[] {
  const octets = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  const slices: Uint8Array[] = octets[0] === DOT ? [DOT_OCTET] : [];
  let start = 0;
  for (let at = octets.indexOf(LF_DOT); at >= 0; at = octets.indexOf(LF_DOT, start)) {
    if (slices.length >= MAX_SLICES) return [...slices, copied(octets.subarray(start)), endOf(octets)];
    slices.push(octets.subarray(start, at + 1), DOT_OCTET);
    start = at + 1;
  }
  slices.push(octets.subarray(start), endOf(octets));
  return slices;
}

/** Copies the octets with dots stuffed. The caller has stuffed a dot at the very start. */
function copied(octets: Buffer): Buffer {
  let dots = 0;
  for (let at = 1; at < octets.length; at++) if (octets[at] === DOT && octets[at - 1] === LF) dots++;
  const copy = Buffer.allocUnsafe(octets.length + dots);
  let end = 0;
  for (let at = 0; at < octets.length; at++) {
    const octet = octets[at] ?? 0;
    if (octet === DOT && at > 0 && octets[at - 1] === LF) copy[end++] = DOT;
    copy[end++] = octet;
  }
  return copy;
}

function endOf(octets: Buffer): Buffer {
  const { length } = octets;
  const whole = length === 0 || (octets[length - 2] === CR && octets[length - 1] === LF);
  return whole ? END : CRLF_END;
}
