import { isUtf8 } from "node:buffer";
import type { CommandLine } from "./input-buffer.ts";
import { REPLIES, type Reply, reply } from "./reply.ts";

/** The user name and the password of a login. */
export interface Credentials {
  user: string;
  password: string;
}

/** A login that the handler has accepted. */
export interface Login {
  /** The user name as the client gave it. */
  user: string;
  /** How the handler knows the client. It has a meaning for the handler only. */
  identity: string;
}

/** How a server of submissions (RFC 6409) asks for logins. */
export interface LoginRules {
  /** If true, MAIL needs a login. */
  required: boolean;
  /** If true, AUTH is also offered without TLS. */
  inPlainText: boolean;
  /** Returns the reply that refuses an address, or null. Which message it gets is decided after the header came. */
  recipient: (address: string) => Reply | null;
}

/** The next step of an AUTH exchange (RFC 4954 §4): a question, the credentials, or a reply that ends it. */
export type LoginStep =
  | { ask: string; next: (response: string) => LoginStep }
  | { credentials: Credentials }
  | { reply: Reply };

/** Maximum octets of a user name and of a password. Our keys are far shorter. */
const MAX_CREDENTIAL_OCTETS = 512;

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

const MALFORMED: LoginStep = { reply: REPLIES.badLogin };

/** The mechanisms by name. Each begins with the initial response of the client, which is null if it gave none. */
const MECHANISMS: ReadonlyMap<string, (initial: string | null) => LoginStep> = new Map([
  ["PLAIN", (initial) => (initial === null ? { ask: "", next: plain } : plain(initial))],
  ["LOGIN", (initial) => (initial === null ? { ask: "Username:", next: userName } : userName(initial))],
]);

/** The names that EHLO offers. */
export const LOGIN_MECHANISMS = [...MECHANISMS.keys()];

/** RFC 4616 §2: an authorization identity, which we do not have, the user name and the password. */
function plain(text: string): LoginStep {
  const [, user, password, ...more] = text.split("\0");
  if (user === undefined || password === undefined || more.length > 0) return MALFORMED;
  return credentials(user, password);
}

/** The mechanism LOGIN (draft-murchison-sasl-login), which old programs and printers speak. */
function userName(user: string): LoginStep {
  return { ask: "Password:", next: (password) => credentials(user, password) };
}

function credentials(user: string, password: string): LoginStep {
  const isLong = [user, password].some((text) => Buffer.byteLength(text) > MAX_CREDENTIAL_OCTETS);
  return isLong ? MALFORMED : { credentials: { user, password } };
}

/**
 * Begins an exchange.
 * @param initial the initial response in base64; `=` is an empty one (RFC 4954 §4)
 */
export function beginLogin(mechanism: string, initial: string | null): LoginStep {
  const begin = MECHANISMS.get(mechanism.toUpperCase());
  if (begin === undefined) return { reply: REPLIES.unknownMechanism };
  if (initial === null) return begin(null);
  const text = initial === "=" ? "" : decoded(initial);
  return text === null ? MALFORMED : begin(text);
}

/** Continues an exchange with the line that answers its question. `*` cancels it. */
export function continueLogin(step: Extract<LoginStep, { ask: string }>, line: CommandLine): LoginStep {
  if (typeof line !== "string") return { reply: line };
  if (line === "*") return { reply: REPLIES.loginCanceled };
  const text = decoded(line);
  return text === null ? MALFORMED : step.next(text);
}

/** Returns the reply that asks a question. */
export function challenge(ask: string): Reply {
  return reply(334, null, Buffer.from(ask).toString("base64"));
}

function decoded(base64: string): string | null {
  if (!BASE64.test(base64)) return null;
  const octets = Buffer.from(base64, "base64");
  return isUtf8(octets) ? octets.toString("utf8") : null;
}
