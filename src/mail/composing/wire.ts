import { isAscii } from "node:buffer";
import { MAX_LINE_OCTETS } from "./header-fields.ts";

const CR = 0x0d;
const LF = 0x0a;

/** Returns the fault of bytes meant for the wire, or null if there is none. */
export function wireFault(raw: Buffer, allow8bit: boolean): string | null {
  if (raw.includes(0)) return "a NUL octet";
  if (!allow8bit && !isAscii(raw)) return "an octet beyond ASCII";
  if (raw[raw.length - 1] !== LF) return "a last line without its end";
  let start = 0;
  while (start < raw.length) {
    const end = raw.indexOf(LF, start);
    if (raw[end - 1] !== CR || end === start) return "a bare LF";
    if (end - 1 - start > MAX_LINE_OCTETS) return "a line over 998 octets";
    // The first CR at or after the start of a line must be the one that ends it.
    if (raw.indexOf(CR, start) !== end - 1) return "a bare CR";
    start = end + 1;
  }
  return null;
}
