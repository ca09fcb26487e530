import type { Reply } from "./reply-parser.ts";

/** What a peer has said it can, from its reply to EHLO (RFC 5321 §4.1.1.1). */
export interface Capabilities {
  pipelining: boolean;
  startTls: boolean;
  eightBitMime: boolean;
  smtpUtf8: boolean;
  /** SIZE is offered (RFC 1870). */
  size: boolean;
  /** Octets a message may have; null where the peer names no limit. */
  maxSize: number | null;
  /** Mechanisms of AUTH, in capitals. */
  auth: ReadonlySet<string>;
}

/** A peer that only knows HELO. */
export const NO_CAPABILITIES: Capabilities = {
  pipelining: false,
  startTls: false,
  eightBitMime: false,
  smtpUtf8: false,
  size: false,
  maxSize: null,
  auth: new Set(),
};

/** Reads the lines behind the first one; keywords count in any case. */
export function readCapabilities(reply: Reply): Capabilities {
  const words = reply.lines.slice(1).map((line) => line.toUpperCase().split(/[ =]+/));
  const parametersOf = (keyword: string): string[] | null =>
    words.find(([first]) => first === keyword)?.slice(1) ?? null;
  const size = parametersOf("SIZE");
  return {
    pipelining: parametersOf("PIPELINING") !== null,
    startTls: parametersOf("STARTTLS") !== null,
    eightBitMime: parametersOf("8BITMIME") !== null,
    smtpUtf8: parametersOf("SMTPUTF8") !== null,
    size: size !== null,
    maxSize: readSize(size?.[0]),
    // Some servers have a line for each form, "AUTH" and "AUTH=", and do not say the same in both.
    auth: new Set(words.flatMap(([first, ...mechanisms]) => (first === "AUTH" ? mechanisms : []))),
  };
}

/** RFC 1870 §4: no number or 0 means no fixed limit. */
function readSize(text: string | undefined): number | null {
  return text !== undefined && /^[1-9][0-9]{0,14}$/.test(text) ? Number(text) : null;
}
