import type { Envelope } from "../../smtp/envelope.ts";

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** A date-time of RFC 5322 §3.3, in UTC. */
export function mailDate(at: number): string {
  const date = new Date(at);
  const time = date.toISOString().slice(11, 19);
  return `${DAYS[date.getUTCDay()]}, ${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()} ${time} +0000`;
}

/** The fields we put in front of a mail, topmost first. */
const TRACE_FIELDS = ["return-path", "authentication-results", "received"] as const;

/**
 * The trace fields we put in front of a mail we take: Return-Path (RFC 5321 §4.4), what we found out about its sender,
 * and Received, which says by the keyword of RFC 3848 whether TLS was on. The bytes below stay as they came, so a field
 * that claims to be of ours stays, too: whoever reads the mail is to believe the topmost Authentication-Results alone
 * (RFC 8601 §5), and we read none.
 * @param authResults the whole Authentication-Results field with its last line end
 * @param at milliseconds
 */
export function traceFields(envelope: Envelope, authResults: string, hostname: string, at: number): string {
  const { mailFrom, helo, ip, tls, rcptTo, smtpUtf8 } = envelope;
  const protocol = `${smtpUtf8 ? "UTF8SMTP" : "ESMTP"}${tls === null ? "" : "S"}`;
  const literal = ip.includes(":") ? `IPv6:${ip}` : ip;
  // With several recipients a `for` clause would tell each of the others (RFC 5321 §7.2).
  const to = rcptTo.length === 1 ? `\r\n\tfor <${rcptTo[0]}>` : "";
  return (
    `Return-Path: <${mailFrom}>\r\n` +
    authResults +
    `Received: from ${helo || "unknown"} ([${literal}])\r\n` +
    `\tby ${hostname} with ${protocol}${to};\r\n\t${mailDate(at)}\r\n`
  );
}

/** Octets in front of a mail for our trace fields; longer ones, as of a mail with many signatures, cost a copy. */
const TRACE_ROOM_OCTETS = 4096;

/**
 * The mail in memory that the threads share, with room in front of it: then neither handing it to the thread that reads
 * it nor putting our fields before it takes another copy, which of a large mail holds this thread.
 */
export function withRoom(raw: Uint8Array): Uint8Array {
  const memory = new SharedArrayBuffer(TRACE_ROOM_OCTETS + raw.length);
  const roomy = new Uint8Array(memory, TRACE_ROOM_OCTETS);
  roomy.set(raw);
  return roomy;
}

/** The mail with our trace fields before it, in its own memory where `withRoom` has made that. */
export function withTrace(trace: string, raw: Uint8Array): Uint8Array {
  const fields = Buffer.from(trace, "utf8");
  const { buffer, byteOffset, length } = raw;
  // No pool of the runtime's is shared memory: what stands before the mail there is its own.
  if (!(buffer instanceof SharedArrayBuffer) || fields.length > byteOffset)
    return Buffer.concat([fields, raw]);
  const kept = new Uint8Array(buffer, byteOffset - fields.length, fields.length + length);
  kept.set(fields);
  return kept;
}

const LF = 0x0a;
const FOLDS: readonly (number | undefined)[] = [0x20, 0x09];

/** A mail as it was received: what we keep of it, without the trace fields of ours. */
export function withoutTrace(kept: Uint8Array): Uint8Array {
  let at = 0;
  for (const name of TRACE_FIELDS) {
    const start = Buffer.from(kept.subarray(at, at + name.length + 1)).toString("latin1");
    if (start.toLowerCase() === `${name}:`) at = fieldEnd(kept, at);
  }
  return kept.subarray(at);
}

/** Where the field that begins at `from` ends, with its folds. */
function fieldEnd(bytes: Uint8Array, from: number): number {
  let end = bytes.indexOf(LF, from) + 1;
  while (end > 0 && FOLDS.includes(bytes[end])) end = bytes.indexOf(LF, end) + 1;
  return end === 0 ? bytes.length : end;
}
