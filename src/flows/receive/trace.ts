import type { Envelope } from "../../smtp/envelope.ts";

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** A date-time of RFC 5322 §3.3, in UTC. */
function mailDate(at: number): string {
  const date = new Date(at);
  const time = date.toISOString().slice(11, 19);
  return `${DAYS[date.getUTCDay()]}, ${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()} ${time} +0000`;
}

/**
 * The trace fields we put in front of a mail we take: Return-Path (RFC 5321 §4.4), what we found out about its sender,
 * and Received, which says by the keyword of RFC 3848 whether TLS was on. The bytes below stay as they came, so a field
 * that claims to be of ours stays, too: whoever reads the mail is to believe the topmost Authentication-Results alone
 * (RFC 8601 §5), and we read none.
 * @param authResults the whole Authentication-Results field with its last line end
 * @param at milliseconds
 */
export function traceFields(envelope: Envelope, authResults: string, hostname: string, at: number): string {
  const { mailFrom, helo, ip, rcptTo } = envelope;
  const literal = ip.includes(":") ? `IPv6:${ip}` : ip;
  // With several recipients a `for` clause would tell each of the others (RFC 5321 §7.2).
  const to = rcptTo.length === 1 ? `\r\n\tfor <${rcptTo[0]}>` : "";
  return (
    `Return-Path: <${mailFrom}>\r\n` +
    authResults +
    `Received: from ${helo || "unknown"} ([${literal}])\r\n` +
    `\tby ${hostname} with ${protocolOf(envelope)}${to};\r\n\t${mailDate(at)}\r\n`
  );
}

/** How the mail came, as the registry of RFC 3848 §2 and RFC 6531 §4.3 names it; TLS takes EHLO. */
function protocolOf({ tls, smtpUtf8, plainSmtp }: Envelope): string {
  if (tls !== null) return smtpUtf8 ? "UTF8SMTPS" : "ESMTPS";
  if (plainSmtp) return "SMTP";
  return smtpUtf8 ? "UTF8SMTP" : "ESMTP";
}
