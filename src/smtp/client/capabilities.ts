import type { Reply } from "./reply-parser.ts";

/** Extensions that a peer offers in its reply to EHLO (RFC 5321 §4.1.1.1). */
export interface Capabilities {
  pipelining: boolean;
  startTls: boolean;
  eightBitMime: boolean;
  smtpUtf8: boolean;
  /** True if SIZE is offered (RFC 1870). */
  size: boolean;
  /** Largest message in octets; null if the peer names no limit. */
  maxSize: number | null;
  /** AUTH mechanisms, in upper case. */
  auth: ReadonlySet<string>;
}

/** Capabilities of a peer that only supports HELO. */
export const NO_CAPABILITIES: Capabilities = {
  pipelining: false,
  startTls: false,
  eightBitMime: false,
  smtpUtf8: false,
  size: false,
  maxSize: null,
  auth: new Set(),
};

/** Reads the lines after the first one, in any case. */
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
    // Some servers send both "AUTH" and "AUTH=" with different mechanisms.
    auth: new Set(words.flatMap(([first, ...mechanisms]) => (first === "AUTH" ? mechanisms : []))),
  };
}

/** RFC 1870 §4: no number or 0 means no fixed limit. */
function readSize(text: string | undefined): number | null {
  return text !== undefined && /^[1-9][0-9]{0,14}$/.test(text) ? Number(text) : null;
}
