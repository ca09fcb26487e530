/** Line feed; a line of SMTP ends with CR and LF (RFC 5321 §2.3.8). */
export const LF = 0x0a;
/** Carriage return. */
export const CR = 0x0d;

/** Index of the next such octet from `from` on; the length of `octets` where none follows. */
export function indexOr(octets: Uint8Array, octet: number, from: number): number {
  const at = octets.indexOf(octet, from);
  return at < 0 ? octets.length : at;
}
