import { type BracketedPath, type Path, parseForwardPath, parseReversePath, splitBracketed } from "./path.ts";
import { REPLIES, type Reply } from "./reply.ts";

/** Parameters of MAIL (RFC 5321 §4.1.1.11). */
export interface MailParameters {
  /** Octets the sender announces (RFC 1870 §6.1). */
  size?: number;
  /** RFC 6152 §2. */
  body?: "7BIT" | "8BITMIME";
  /** RFC 6531 §3.4. */
  smtpUtf8: boolean;
}

/** Fields of each command besides its verb. `refused` is a line that is not a valid command, with the reply to it. */
interface Arguments {
  EHLO: { name: string };
  HELO: { name: string };
  MAIL: { path: Path; parameters: MailParameters };
  RCPT: { path: Path };
  STARTTLS: object;
  DATA: object;
  BDAT: { size: number; last: boolean };
  /** The initial response is in base64; null if there is none. */
  AUTH: { mechanism: string; initial: string | null };
  RSET: object;
  NOOP: object;
  VRFY: object;
  HELP: object;
  QUIT: object;
  /** `recipient` is set if it is a RCPT, because the reply to DATA depends on whether one was tried. */
  refused: { reply: Reply; recipient?: true };
}

export type Verb = keyof Arguments;
/** A parsed command line. */
export type Command<V extends Verb = Verb> = { [K in V]: { verb: K } & Arguments[K] }[V];

type Parser = (argument: string) => Command;

function refused(reply: Reply): Command<"refused"> {
  return { verb: "refused", reply };
}

/** Parses a command without an argument. If there is one, answers 501 (RFC 5321 §4.3.2). */
function bare(verb: "STARTTLS" | "DATA" | "RSET" | "QUIT"): Parser {
  return (argument) => (argument === "" ? { verb } : refused(REPLIES.noArgument));
}

/** RFC 1035 §2.3.4: octets of a name. */
const MAX_HELO_CHARS = 255;

/**
 * Parses a name of any form. It should be a domain or an address literal, but real peers use other names, and RFC 5321
 * §4.1.4 forbids refusing mail for that. Characters that could break a Received line become `?`, as with Postfix.
 */
function greeting(verb: "EHLO" | "HELO"): Parser {
  return (name) =>
    name === "" || name.length > MAX_HELO_CHARS
      ? refused(REPLIES.badHelo)
      : { verb, name: name.replace(/[^A-Za-z0-9._:[\]-]/gu, "?") };
}

/** RFC 5321 §4.1.2: esmtp-keyword, and an esmtp-value of printable characters other than "=". */
const PARAMETER = /^([A-Za-z0-9][A-Za-z0-9-]*)(?:=([\x21-\x3c\x3e-\x7e]+))?$/;

/** Returns the parameters by upper-case keyword, or a reply if one is malformed or repeated. */
function parseParameters(text: string): Map<string, string | null> | Reply {
  const parameters = new Map<string, string | null>();
  for (const word of text.split(" ").filter((part) => part !== "")) {
    const match = PARAMETER.exec(word);
    const keyword = match?.[1]?.toUpperCase();
    if (keyword === undefined || parameters.has(keyword)) return REPLIES.badParameter;
    parameters.set(keyword, match?.[2] ?? null);
  }
  return parameters;
}

/** Parsers of parameters by keyword. They return false if the value is malformed. */
type ParameterParsers = Readonly<Record<string, (value: string | null, into: MailParameters) => boolean>>;

const MAIL_PARAMETERS: ParameterParsers = {
  // RFC 1870 §6.1: 1 to 20 digits. A number over 2^53 is rounded, but is too large in any case.
  SIZE: (value, into) => {
    into.size = Number(value);
    return value !== null && /^[0-9]{1,20}$/.test(value);
  },
  BODY: (value, into) => {
    const body = value?.toUpperCase();
    if (body !== "7BIT" && body !== "8BITMIME") return false;
    into.body = body;
    return true;
  },
  SMTPUTF8: (value, into) => {
    into.smtpUtf8 = true;
    return value === null;
  },
};

/**
 * Parameters of submissions that are taken and have no effect. AUTH (RFC 4954 §5) names the first submitter. The others
 * ask for notifications (RFC 3461 §4), which we do not offer, but some programs send them to any server.
 */
const SUBMITTED_MAIL_PARAMETERS: ParameterParsers = {
  ...MAIL_PARAMETERS,
  AUTH: (value) => value !== null,
  RET: (value) => /^(?:FULL|HDRS)$/i.test(value ?? ""),
  ENVID: (value) => value !== null,
};
const IGNORED_RCPT_PARAMETERS: ParameterParsers = {
  NOTIFY: (value) =>
    /^(?:NEVER|(?:SUCCESS|FAILURE|DELAY)(?:,(?:SUCCESS|FAILURE|DELAY))*)$/i.test(value ?? ""),
  ORCPT: (value) => /^[^;]+;./.test(value ?? ""),
};

function readParameters(text: string, parsers: ParameterParsers): MailParameters | Reply {
  const given = parseParameters(text);
  if (!(given instanceof Map)) return given;
  const parameters: MailParameters = { smtpUtf8: false };
  for (const [keyword, value] of given) {
    const set = Object.hasOwn(parsers, keyword) ? parsers[keyword] : undefined;
    if (set === undefined) return REPLIES.unknownParameter;
    if (!set(value, parameters)) return REPLIES.badParameter;
  }
  return parameters;
}

/**
 * Splits the argument `FROM:<path> parameters` or `TO:<path> parameters`. Spaces after the colon break the grammar, but
 * scripts send them and they are unambiguous. A space must separate the path from parameters.
 */
function splitPathArgument(argument: string, keyword: "FROM" | "TO"): BracketedPath | null {
  if (argument.slice(0, keyword.length + 1).toUpperCase() !== `${keyword}:`) return null;
  const split = splitBracketed(argument.slice(keyword.length + 1).replace(/^ +/, ""));
  return split === null || (split.rest !== "" && !split.rest.startsWith(" ")) ? null : split;
}

function parseMail(argument: string, parsers: ParameterParsers): Command {
  const split = splitPathArgument(argument, "FROM");
  if (split === null) return refused(REPLIES.badMailSyntax);
  const path = parseReversePath(split.inner);
  if (path === null) return refused(REPLIES.badSender);
  const parameters = readParameters(split.rest, parsers);
  if ("code" in parameters) return refused(parameters);
  if (path.beyondAscii && !parameters.smtpUtf8) return refused(REPLIES.needsSmtpUtf8);
  return { verb: "MAIL", path, parameters };
}

function refusedRecipient(reply: Reply): Command {
  return { ...refused(reply), recipient: true };
}

function parseRcpt(argument: string, parsers: ParameterParsers): Command {
  const split = splitPathArgument(argument, "TO");
  if (split === null) return refusedRecipient(REPLIES.badRcptSyntax);
  const path = parseForwardPath(split.inner);
  if (path === null) return refusedRecipient(REPLIES.badRecipient);
  const parameters = readParameters(split.rest, parsers);
  return "code" in parameters ? refusedRecipient(parameters) : { verb: "RCPT", path };
}

/** RFC 3030 §2: the size of the chunk that follows, and whether it is the last. A size over 2^53 is refused. */
function parseBdat(argument: string): Command {
  const match = /^([0-9]{1,20})( +LAST)?$/i.exec(argument);
  if (match === null) return { verb: "BDAT", size: Number.NaN, last: false };
  return { verb: "BDAT", size: Number(match[1]), last: match[2] !== undefined };
}

/** RFC 4954 §4. */
function parseAuth(argument: string): Command {
  const match = /^([A-Za-z0-9_-]{1,20})(?: +([^ ]+))?$/.exec(argument);
  if (match === null) return refused(REPLIES.badAuthSyntax);
  return { verb: "AUTH", mechanism: match[1] ?? "", initial: match[2] ?? null };
}

/** Commands of RFC 5321 and its extensions that this server does not implement (§4.2.4: 502). */
const NOT_IMPLEMENTED = ["AUTH", "BURL", "ETRN", "EXPN", "SAML", "SEND", "SOML", "TURN"];

const PARSERS: ReadonlyMap<string, Parser> = new Map<string, Parser>([
  ["EHLO", greeting("EHLO")],
  ["HELO", greeting("HELO")],
  ["MAIL", (argument) => parseMail(argument, MAIL_PARAMETERS)],
  ["RCPT", (argument) => parseRcpt(argument, {})],
  ["STARTTLS", bare("STARTTLS")],
  ["DATA", bare("DATA")],
  ["BDAT", parseBdat],
  ["RSET", bare("RSET")],
  ["QUIT", bare("QUIT")],
  ["NOOP", () => ({ verb: "NOOP" })],
  ["HELP", () => ({ verb: "HELP" })],
  ["VRFY", (argument) => (argument === "" ? refused(REPLIES.needsArgument) : { verb: "VRFY" })],
  ...NOT_IMPLEMENTED.map((verb): [string, Parser] => [verb, () => refused(REPLIES.notImplemented)]),
  // HTTP verbs. Browsers that a web page tricks into talking to us send them (cross-protocol request forgery).
  ...["GET", "POST", "PUT", "CONNECT", "OPTIONS"].map((verb): [string, Parser] => [
    verb,
    () => refused(REPLIES.notSmtp),
  ]),
]);

/** The commands of a server that takes submissions (RFC 6409). */
const SUBMISSION_PARSERS: ReadonlyMap<string, Parser> = new Map<string, Parser>([
  ...PARSERS,
  ["MAIL", (argument) => parseMail(argument, SUBMITTED_MAIL_PARAMETERS)],
  ["RCPT", (argument) => parseRcpt(argument, IGNORED_RCPT_PARAMETERS)],
  ["AUTH", parseAuth],
]);

/** Parses one command line without its CRLF. @param submission if true, with the commands of a submission */
export function parseCommand(line: string, submission = false): Command {
  if (/[\x00-\x08\x0a-\x1f\x7f]/.test(line)) return refused(REPLIES.malformedLine);
  // RFC 5321 §4.1.1: ignore trailing white space and the case of verbs.
  const [, verb = "", argument = ""] = /^([^ \t]*)[ \t]*(.*)$/s.exec(line.trimEnd()) ?? [];
  const parsers = submission ? SUBMISSION_PARSERS : PARSERS;
  return parsers.get(verb.toUpperCase())?.(argument) ?? refused(REPLIES.unknownCommand);
}
