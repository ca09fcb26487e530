/** Tags of the DER types (ITU-T X.690 §8) that certificates and requests for them use. */
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

/** From this value on, separate octets hold the length. */
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

/** A value in DER as it was read. */
export interface DerValue {
  tag: number;
  content: Buffer;
  /** Offset after the value. */
  end: number;
}

/** Maximum octets of a length. Four of them count more than any certificate has. */
const MAX_LENGTH_OCTETS = 4;

/**
 * Reads the value at an offset.
 * @throws RangeError if it is cut short, or if its length is not in DER
 */
export function readDer(octets: Buffer, at = 0): DerValue {
  const tag = octets.readUInt8(at);
  const first = octets.readUInt8(at + 1);
  const more = first < LONG_LENGTH ? 0 : first - LONG_LENGTH;
  if (more > MAX_LENGTH_OCTETS || first === LONG_LENGTH)
    throw new RangeError("a DER length has a wrong form");
  const start = at + 2 + more;
  const end = start + (more === 0 ? first : octets.readUIntBE(at + 2, more));
  if (end > octets.length) throw new RangeError("a DER value is cut short");
  return { tag, content: octets.subarray(start, end), end };
}

/** Reads all values that a constructed one holds. Throws RangeError as `readDer` does. */
export function readDerParts({ content }: DerValue): DerValue[] {
  const parts: DerValue[] = [];
  for (let at = 0; at < content.length; at = parts.at(-1)?.end ?? content.length)
    parts.push(readDer(content, at));
  return parts;
}
