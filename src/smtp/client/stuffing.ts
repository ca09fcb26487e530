import { CR, LF } from "../octets.ts";

const DOT = 0x2e;
const DOT_OCTET = Buffer.from(".");
const LF_DOT = Buffer.from("\n.");
/** Ends a message whose last line is whole. */
const END = Buffer.from(".\r\n");
/** Ends a message that lacks its last CRLF. */
const CRLF_END = Buffer.from("\r\n.\r\n");

/** What ends DATA at once, with an empty message (RFC 2920 §3.1). */
export const EMPTY_DATA = END;

/**
 * The message as it goes behind 354: a dot before each line that begins with one (RFC 5321 §4.5.2), and the dot that
 * ends it. Slices of `raw`, nothing copied.
 *
 * A dot behind a bare LF is doubled too: a peer that takes a bare LF for a line end would else see the end of the
 * message inside it, and what follows as commands (SMTP smuggling).
 */
export function stuffed(raw: Uint8Array): Uint8Array[] {
  const octets = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  const slices: Uint8Array[] = octets[0] === DOT ? [DOT_OCTET] : [];
  let start = 0;
  for (let at = octets.indexOf(LF_DOT); at >= 0; at = octets.indexOf(LF_DOT, start)) {
    slices.push(octets.subarray(start, at + 1), DOT_OCTET);
    start = at + 1;
  }
  slices.push(octets.subarray(start), endOf(octets));
  return slices;
}

function endOf(octets: Buffer): Buffer {
  const { length } = octets;
  const whole = length === 0 || (octets[length - 2] === CR && octets[length - 1] === LF);
  return whole ? END : CRLF_END;
}
