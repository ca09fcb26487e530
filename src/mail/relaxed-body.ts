const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;

/**
 * Whether more than so many lines of a mail's body hold white space that relaxed canonicalization changes.
 * @param from the octet with which the body begins
 */
export function isLoose(mail: Uint8Array, from: number, maxLines: number): boolean {
  let lines = 0;
  let loose = false;
  for (let at = from; at < mail.length; at++) {
    const octet = mail[at];
    if (octet === LF) {
      if (loose && ++lines > maxLines) return true;
      loose = false;
    } else if (octet === TAB) loose = true;
    else if (octet === SPACE) loose ||= isWhite(mail[at + 1]) || mail[at + 1] === CR || mail[at + 1] === LF;
  }
  return false;
}

/**
 * The mail with the white space of its body as relaxed canonicalization leaves it (RFC 6376 §3.4.4): none before a line end,
 * else one space. Hashed by that canonicalization, with or without `l=`, both are the same.
 * @param from the octet with which the body begins
 */
export function withRelaxedBody(mail: Buffer, from: number): Buffer {
  const relaxed = Buffer.allocUnsafe(mail.length);
  let length = mail.copy(relaxed, 0, 0, from);
  let space = false;
  for (let at = from; at < mail.length; at++) {
    const octet = mail[at] ?? 0;
    if (isWhite(octet)) {
      space = true;
      continue;
    }
    const ends = octet === LF || (octet === CR && mail[at + 1] === LF);
    if (space && !ends) relaxed[length++] = SPACE;
    space = false;
    relaxed[length++] = octet;
  }
  return relaxed.subarray(0, length);
}

function isWhite(octet: number | undefined): boolean {
  return octet === SPACE || octet === TAB;
}
