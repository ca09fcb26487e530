import type { Envelope } from "../../smtp/session/envelope.ts";

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Formats a date-time of RFC 5322 §3.3 in UTC. */
function mailDate(at: number): string {
  const date = new Date(at);
  const time = date.toISOString().slice(11, 19);
  return `${DAYS[date.getUTCDay()]}, ${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()} ${time} +0000`;
}

/**
 * Makes the trace fields that we put above a received message: Return-Path (RFC 5321 §4.4), Authentication-Results and
 * Received. Apart from Authentication-Results in our name (`mail/auth/own-results`), the message itself stays unchanged.
 * @param authResults the whole Authentication-Results field with its last line end
 * @param at milliseconds
 */
export function traceFields(envelope: Envelope, authResults: string, hostname: string, at: number): string {
  const { mailFrom, helo, ip, rcptTo } = envelope;
  const literal = ip.includes(":") ? `IPv6:${ip}` : ip;
  // With several recipients, a `for` clause would disclose them to each other (RFC 5321 §7.2).
  const to = rcptTo.length === 1 ? `\r\n\tfor <${rcptTo[0]}>` : "";
  return (
    `Return-Path: <${mailFrom}>\r\n` +
    authResults +
    `Received: from ${helo || "unknown"} ([${literal}])\r\n` +
    `\tby ${hostname} with ${protocolOf(envelope)}${to};\r\n\t${mailDate(at)}\r\n`
  );
}

/** Returns the protocol keyword of RFC 3848 §2 and RFC 6531 §4.3. With TLS it is always an ESMTP one. */
function protocolOf({ tls, smtpUtf8, plainSmtp }: Envelope): string {
  if (tls !== null) return smtpUtf8 ? "UTF8SMTPS" : "ESMTPS";
  if (plainSmtp) return "SMTP";
  return smtpUtf8 ? "UTF8SMTP" : "ESMTP";
}
