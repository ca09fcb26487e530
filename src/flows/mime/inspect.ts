import type { Clock } from "../../core/time/clock.ts";
import {
  type AuthDeps,
  type Authentication,
  type AuthEnvelope,
  authenticate,
  authenticateSender,
  unchecked,
} from "../../mail/auth/authenticate.ts";
import { policyAnswer } from "../../mail/auth/policy-answer.ts";
import { headerOnly, type OpenMail, openMail } from "../../mail/reading/parse.ts";
import { previewOf } from "../../mail/text/preview.ts";
import { newPart } from "../../mail/text/reply-text.ts";
import { CHUNK_OCTETS, type HashedContent, newContent } from "../../store/contents/content-bytes.ts";
import { bodyBytes } from "../../store/contents/message-body.ts";
import { type BodyChunk, type LargeBody, encodeBody } from "./body-encoder.ts";
import { fieldsByName } from "../../mail/reading/shown-headers.ts";

/** Time that the checks of one message may wait for DNS, milliseconds. A check that is not done by then is `temperror`. */
export const AUTH_DEADLINE_MS = 10_000;
/** Time for the checks of the author's own domain, because slow servers of other domains may have delayed them. */
export const AUTHOR_DEADLINE_MS = 2 * AUTH_DEADLINE_MS;

/** A received message, and the session that delivered it. */
export interface MailToInspect {
  raw: Uint8Array;
  /** Null for a simulated message, which has no sender to check. */
  session: AuthEnvelope | null;
  /** Needs of the rules of its inboxes. If left out, there are none. */
  rules?: { refuses: boolean; headers: readonly string[] } | undefined;
}

/** The parsed message without bodies and header fields. */
export type ReadMail = Omit<OpenMail, "fields" | "text" | "html">;

export interface HashedBody {
  body: HashedContent;
  /** Its chunks if it is large, else null. */
  largeBody: BodyChunk[] | null;
}

/** The contents to store. They are hashed here, and small ones compressed, to spare the main thread. */
export interface MailContents extends HashedBody {
  /** A body that holds only the header fields; null unless the message is refused, or a rule may refuse it. */
  header: HashedBody | null;
  /** The bytes as received. */
  raw: HashedContent;
}

/** The result of inspecting a message. */
export interface Inspection {
  mail: ReadMail;
  contents: MailContents;
  authentication: Authentication;
  /** The header fields that rules ask for, by their name in lower case. */
  ruleHeaders: Record<string, string>;
}

export interface InspectDeps extends AuthDeps {
  clock: Clock;
}

/** Authenticates the sender of a message and parses it. Blocks the thread while it parses. */
export async function inspectMail(deps: InspectDeps, mail: MailToInspect): Promise<Inspection> {
  // Parse while the DNS queries are in flight.
  const checking = check(deps, mail, authenticate);
  const parsed = await openMail(mail.raw);
  const reply = newPart({ text: parsed.text?.beginning ?? null, html: parsed.html?.beginning ?? null });
  // The preview shows the new text without quotes.
  const preview = reply === null ? parsed.preview : previewOf(reply, null);
  const contents = contentsOf(parsed, reply, mail.raw);
  return inspection({ ...recorded(parsed), preview }, contents, await checking, mail);
}

/**
 * Inspects the header of a message that could not be parsed in time. Checks SPF and the author's policy; text, attachments
 * and signatures are not read.
 */
export async function inspectHeader(deps: InspectDeps, mail: MailToInspect): Promise<Inspection> {
  const checking = check(deps, mail, authenticateSender);
  const parsed = {
    ...headerOnly(mail.raw),
    unread: "too_slow" as const,
    text: null,
    html: null,
    attachments: [],
  };
  const contents = contentsOf(parsed, null, mail.raw);
  return inspection(recorded(parsed), contents, await checking, mail);
}

function inspection(
  mail: ReadMail,
  contents: MailContents,
  authentication: Authentication,
  { raw, rules }: MailToInspect,
): Inspection {
  const refused = rules?.refuses === true || policyAnswer(authentication.verdict.dmarc) === "refuse";
  return {
    mail,
    contents: { ...contents, header: refused ? headerBody(raw) : null },
    authentication,
    ruleHeaders: ruleHeadersOf(raw, rules?.headers ?? []),
  };
}

/** Parses the header again, because few projects have rules that ask for fields. */
function ruleHeadersOf(raw: Uint8Array, names: readonly string[]): Record<string, string> {
  if (names.length === 0) return {};
  const found = Object.entries(fieldsByName(headerOnly(raw).fields));
  const wanted = new Set(names);
  return Object.fromEntries(
    found.flatMap(([name, value]) => (wanted.has(name.toLowerCase()) ? [[name.toLowerCase(), value]] : [])),
  );
}

function recorded({ text: _, html: __, fields: ___, ...mail }: OpenMail): ReadMail {
  return mail;
}

function contentsOf({ html, text, fields }: OpenMail, reply: string | null, raw: Uint8Array): MailContents {
  const more = {
    // Messages mostly quote nothing.
    replyText: reply?.trim() === text?.beginning.trim() ? null : reply,
    headers: fieldsByName(fields),
  };
  return { ...hashedBody({ html, text, ...more }), raw: newContent(raw), header: null };
}

/** Makes the body of a refused message. Parses the header again, because few of the many messages in progress need it. */
function headerBody(raw: Uint8Array): HashedBody {
  const { fields } = headerOnly(raw);
  return hashedBody({ html: null, text: null, replyText: null, headers: fieldsByName(fields) });
}

/** Encodes and hashes a body. A large one is encoded in chunks. */
export function hashedBody({ html, text, ...more }: LargeBody): HashedBody {
  if (text?.whole !== false && html?.whole !== false) {
    const bytes = bodyBytes({ html: html?.beginning ?? null, text: text?.beginning ?? null, ...more });
    if (bytes.length <= CHUNK_OCTETS) return { body: newContent(bytes), largeBody: null };
  }
  const { content, chunks } = encodeBody({ html, text, ...more });
  return { body: content, largeBody: chunks };
}

/** Authenticates the sender of a message in bounded time. */
export function checkSender(deps: InspectDeps, mail: MailToInspect): Promise<Authentication> {
  return check(deps, mail, authenticate);
}

async function check(
  deps: InspectDeps,
  { raw, session }: MailToInspect,
  checkBy: typeof authenticate,
): Promise<Authentication> {
  if (session === null) return unchecked(deps.host);
  const [ended, last] = [new AbortController(), new AbortController()];
  const timers = [
    deps.clock.after(AUTH_DEADLINE_MS, () => ended.abort()),
    deps.clock.after(AUTHOR_DEADLINE_MS, () => last.abort()),
  ];
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  const authentication = await checkBy(deps, session, bytes, ended.signal, last.signal);
  for (const cancel of timers) cancel();
  return authentication;
}
