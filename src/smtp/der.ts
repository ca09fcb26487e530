/** Tags of the DER types (ITU-T X.690 §8) that a certificate uses. */
export const TAG = {
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

/** Lengths from here on have length octets of their own. */
const LONG_LENGTH = 0x80;

/** Encodes a value in DER: tag, length, contents. */
export function der(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag, ...lengthOctets(content.length)]), content]);
}

/** X.690 §10.1: as few octets as possible. */
function lengthOctets(length: number): number[] {
  if (length < LONG_LENGTH) return [length];
  const octets: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) octets.unshift(rest % 256);
  return [LONG_LENGTH | octets.length, ...octets];
}

/** Encodes a time in milliseconds. RFC 5280 §4.1.2.5: two-digit years until 2049, four digits after. */
export function derTime(at: number): Buffer {
  const iso = new Date(at).toISOString();
  const digits = `${iso.slice(0, 19).replace(/\D/g, "")}Z`;
  const short = iso < "2050";
  return der(short ? TAG.utcTime : TAG.generalizedTime, Buffer.from(short ? digits.slice(2) : digits));
}
