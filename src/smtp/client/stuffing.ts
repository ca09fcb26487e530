import { CR, LF } from "../octets.ts";

const DOT = 0x2e;
const DOT_OCTET = Buffer.from(".");
const LF_DOT = Buffer.from("\n.");
/** Ends a message whose last line is whole. */
const END = Buffer.from(".\r\n");
/** Ends a message that lacks its last CRLF. */
const CRLF_END = Buffer.from("\r\n.\r\n");

/** Slices of one message; what comes behind them is copied. A mail may be of nothing but dots, a line each. */
export const MAX_SLICES = 1000;

/** What ends DATA at once, with an empty message (RFC 2920 §3.1). */
export const EMPTY_DATA = END;

/**
 * The message as it goes behind 354: a dot before each line that begins with one (RFC 5321 §4.5.2), and the dot that
 * ends it. Slices of `raw`: nothing is copied, unless very many lines begin with a dot.
 *
 * A dot behind a bare LF is doubled too: a peer that takes a bare LF for a line end would else see the end of the
 * message inside it, and what follows as commands (SMTP smuggling).
 */
export function stuffed(raw: Uint8Array): Uint8Array[] {
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

/** A copy with its dots stuffed; one at its very start is stuffed already. */
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
