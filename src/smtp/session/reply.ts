/** An SMTP reply (RFC 5321 §4.2): three-digit code, enhanced status code (RFC 3463), one or more lines of text. */
export interface Reply {
  code: number;
  /** Such as `5.1.1`. Missing in the greeting and in replies to HELO, EHLO and DATA's 354 (RFC 2034 §4). */
  enhanced?: string;
  lines: readonly string[];
}

/** RFC 5321 §4.5.3.1.5: octets of a reply line, CRLF included. */
export const MAX_REPLY_LINE_OCTETS = 512;
/** Maximum number of lines sent of one reply; further lines are dropped. */
export const MAX_REPLY_LINES = 64;

/** Creates a reply of one or more lines. */
export function reply(code: number, enhanced: string | null, ...lines: string[]): Reply {
  return enhanced === null ? { code, lines } : { code, enhanced, lines };
}

/** All fixed replies of the server. */
export const REPLIES = {
  help: reply(
    214,
    "2.0.0",
    "EHLO HELO STARTTLS MAIL RCPT DATA BDAT RSET NOOP VRFY QUIT HELP",
    "See RFC 5321, section 4.1.1.",
  ),
  loggedIn: reply(235, "2.7.0", "Authentication succeeded"),
  startTls: reply(220, "2.0.0", "Ready to start TLS"),
  bye: reply(221, "2.0.0", "Goodbye"),
  ok: reply(250, "2.0.0", "OK"),
  senderOk: reply(250, "2.1.0", "Sender OK"),
  recipientOk: reply(250, "2.1.5", "Recipient OK"),
  cannotVerify: reply(252, "2.5.0", "Cannot verify; send the message and see"),
  startMail: reply(354, null, "Send the message; end with <CRLF>.<CRLF>"),

  tooManyLogins: reply(421, "4.7.0", "Too many failed logins, try again in a minute"),
  shuttingDown: reply(421, "4.3.2", "The service is shutting down, try again later"),
  timeout: reply(421, "4.4.2", "Timeout, closing the connection"),
  tooManyConnections: reply(421, "4.7.0", "Too many connections, try again later"),
  tooManyErrors: reply(421, "4.7.0", "Too many errors, closing the connection"),
  tooMuchInput: reply(421, "4.7.0", "Too much input ahead of the answers, closing the connection"),
  ambiguousMessage: reply(421, "4.7.0", "That message may be read in two ways, closing the connection"),
  notSmtp: reply(421, "4.7.0", "This is not a web server"),
  localTrouble: reply(451, "4.3.0", "Local trouble, try again later"),
  noRoom: reply(452, "4.3.1", "Too many messages are coming in, try again later"),
  tooSlow: reply(421, "4.3.1", "Too many messages are coming in, and this one too slowly"),
  earlyTalker: reply(554, "5.5.0", "Wait for the greeting before you speak"),
  tooManyRecipients: reply(452, "4.5.3", "Too many recipients, send the rest in another transaction"),
  oneBounceRecipient: reply(452, "4.5.3", "A message from the null sender has one recipient"),

  lineTooLong: reply(500, "5.5.2", "Line too long"),
  malformedLine: reply(500, "5.5.2", "Lines end with CRLF and hold no other control character"),
  notUtf8: reply(500, "5.5.2", "The line is not UTF-8"),
  unknownCommand: reply(500, "5.5.1", "Unknown command"),
  badLogin: reply(501, "5.5.2", "The response of AUTH is malformed"),
  loginCanceled: reply(501, "5.7.0", "Authentication canceled"),
  badHelo: reply(501, "5.5.4", "Give a domain name or an address literal"),
  noArgument: reply(501, "5.5.4", "This command takes no argument"),
  needsArgument: reply(501, "5.5.4", "An argument is missing"),
  badMailSyntax: reply(501, "5.5.4", "Syntax: MAIL FROM:<address> [parameters]"),
  badRcptSyntax: reply(501, "5.5.4", "Syntax: RCPT TO:<address> [parameters]"),
  badSender: reply(501, "5.1.7", "The sender's address is malformed"),
  badRecipient: reply(501, "5.1.3", "The recipient's address is malformed"),
  badAuthSyntax: reply(501, "5.5.4", "Syntax: AUTH mechanism [response]"),
  badChunk: reply(501, "5.5.4", "Syntax: BDAT size [LAST]; closing the connection"),
  badParameter: reply(501, "5.5.4", "A parameter is malformed or given twice"),
  notImplemented: reply(502, "5.5.1", "Command not implemented"),
  heloFirst: reply(503, "5.5.1", "Say EHLO or HELO first"),
  chunksBegun: reply(503, "5.5.1", "The message has begun with BDAT and goes on with it"),
  nestedMail: reply(503, "5.5.1", "A sender was given already"),
  mailFirst: reply(503, "5.5.1", "Say MAIL first"),
  rcptFirst: reply(503, "5.5.1", "Say RCPT first"),
  noLoginNow: reply(503, "5.5.1", "AUTH comes once, and before MAIL"),
  unknownMechanism: reply(504, "5.5.4", "The mechanisms are PLAIN and LOGIN"),
  loginNeeded: reply(530, "5.7.0", "Authentication required: AUTH with an API key as the password"),
  tlsNeeded: reply(530, "5.7.0", "Authentication required, and first STARTTLS"),
  wrongLogin: reply(535, "5.7.8", "The password is no valid API key with the right to send"),
  loginNeedsTls: reply(538, "5.7.11", "AUTH needs TLS: STARTTLS first"),
  alreadyTls: reply(503, "5.5.1", "TLS is on already"),
  nulInMessage: reply(550, "5.6.0", "The message holds a NUL character"),
  bareLineEnd: reply(550, "5.5.2", "The message holds a CR or LF that is not part of a CRLF"),
  tooLarge: reply(552, "5.3.4", "The message is larger than this server takes"),
  needsSmtpUtf8: reply(553, "5.6.7", "An address beyond ASCII needs the SMTPUTF8 parameter of MAIL"),
  noRecipients: reply(554, "5.5.1", "No recipient was accepted"),
  unknownParameter: reply(555, "5.5.4", "Parameter not recognized or not implemented"),
} as const satisfies Record<string, Reply>;

/** The extensions that EHLO offers in some sessions only. */
export interface Offers {
  tls: boolean;
  /** Mechanisms of AUTH; empty for none. */
  logins: readonly string[];
}

/** Creates the reply to EHLO (RFC 5321 §4.1.1.1): our name, then one extension per line. */
export function ehloReply(hostname: string, maxMessageBytes: number, { tls, logins }: Offers): Reply {
  const extensions = [
    `SIZE ${maxMessageBytes}`,
    "PIPELINING",
    "8BITMIME",
    "SMTPUTF8",
    "ENHANCEDSTATUSCODES",
    "CHUNKING",
    ...(tls ? ["STARTTLS"] : []),
    ...(logins.length > 0 ? [`AUTH ${logins.join(" ")}`] : []),
  ];
  return reply(250, null, hostname, ...extensions);
}

/**
 * Formats a reply for sending, in ASCII. Anything unprintable, including CR and LF, becomes `?`, so that text from a
 * peer or the database cannot forge another reply (response splitting).
 */
export function formatReply({ code, enhanced, lines }: Reply): string {
  const status = enhanced === undefined ? "" : `${enhanced} `;
  const last = Math.min(lines.length, MAX_REPLY_LINES) - 1;
  let text = "";
  for (let at = 0; at < last; at++) text += replyLine(`${code}-${status}`, lines[at]);
  return text + replyLine(`${code} ${status}`, lines[last]);
}

function replyLine(head: string, text = ""): string {
  return `${head}${text.replace(/[^\x20-\x7e]/g, "?").slice(0, MAX_REPLY_LINE_OCTETS - 2 - head.length)}\r\n`;
}
