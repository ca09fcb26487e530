import type { Clock } from "../../core/clock.ts";
import {
  type AuthDeps,
  type Authentication,
  type AuthEnvelope,
  authenticate,
  unchecked,
  undecided,
} from "../../mail/authenticate.ts";
import { headerOnly, type OpenMail, openMail } from "../../mail/reading/parse.ts";
import { previewOf } from "../../mail/reading/preview.ts";
import { newPart } from "../../mail/reading/reply-text.ts";
import { CHUNK_OCTETS, type HashedContent, newContent } from "../../store/contents/content-bytes.ts";
import { bodyBytes } from "../../store/contents/message-body.ts";
import { type BodyChunk, type LargeBody, writeBody } from "./large-body.ts";
import { refusedByPolicy } from "./refused-by-policy.ts";
import { fieldsByName } from "./shown-headers.ts";

/** Time that the checks of one mail may wait for name servers; what is not known by then is `temperror`. */
export const AUTH_DEADLINE_MS = 10_000;
/** The same for those of the author's own domain, which a mail's others may have kept waiting. */
export const AUTHOR_DEADLINE_MS = 2 * AUTH_DEADLINE_MS;

/** A mail as it came, and the session that brought it. */
export interface MailToInspect {
  raw: Uint8Array;
  /** null for a mail that came from nowhere: there is nothing to check. */
  session: AuthEnvelope | null;
}

/** A mail as it is recorded, but for its bodies and fields. */
export type ReadMail = Omit<OpenMail, "fields" | "text" | "html">;

/** A body that is hashed. */
export interface WrittenBody {
  body: HashedContent;
  /** Its bytes in chunks where it is large. */
  largeBody: BodyChunk[] | null;
}

/** What there is to keep of a mail, hashed, and small parts compressed: all of that is work for the thread that reads. */
export interface MailContents extends WrittenBody {
  /** The body has html, text, reply text and header fields. This one has the fields alone; null unless the mail is refused. */
  header: WrittenBody | null;
  /** The mail as it came. */
  raw: HashedContent;
}

/** All that is found out about a mail before it is taken. */
export interface Inspection {
  mail: ReadMail;
  contents: MailContents;
  authentication: Authentication;
}

export interface InspectDeps extends AuthDeps {
  clock: Clock;
}

/** Checks who sent a mail, and reads it. Never throws. It holds the thread for as long as reading takes. */
export async function inspectMail(deps: InspectDeps, { raw, session }: MailToInspect): Promise<Inspection> {
  // The name servers' time is used for reading.
  const checking = session === null ? unchecked(deps.host) : check(deps, session, raw);
  const parsed = await openMail(raw);
  const reply = newPart({ text: parsed.text?.beginning ?? null, html: parsed.html?.beginning ?? null });
  // A list of threads shows what is new, and not what it answers.
  const preview = reply === null ? parsed.preview : previewOf(reply, null);
  const contents = contentsOf(parsed, reply, raw);
  const authentication = await checking;
  const header = refusedByPolicy(authentication.verdict) ? headerBody(raw) : null;
  return { mail: { ...recorded(parsed), preview }, contents: { ...contents, header }, authentication };
}

function recorded({ text: _, html: __, fields: ___, ...mail }: OpenMail): ReadMail {
  return mail;
}

function contentsOf({ html, text, fields }: OpenMail, reply: string | null, raw: Uint8Array): MailContents {
  const more = {
    // Most mail quotes nothing.
    replyText: reply?.trim() === text?.beginning.trim() ? null : reply,
    headers: fieldsByName(fields),
  };
  return { ...written({ html, text, ...more }), raw: newContent(raw), header: null };
}

/** What is kept of a mail that is refused. Read anew: of the many that wait for name servers, few come to it. */
function headerBody(raw: Uint8Array): WrittenBody {
  const { fields } = headerOnly(raw);
  return written({ html: null, text: null, replyText: null, headers: fieldsByName(fields) });
}

function written({ html, text, ...more }: LargeBody): WrittenBody {
  if (text?.whole !== false && html?.whole !== false) {
    const bytes = bodyBytes({ html: html?.beginning ?? null, text: text?.beginning ?? null, ...more });
    if (bytes.length <= CHUNK_OCTETS) return { body: newContent(bytes), largeBody: null };
  }
  const { content, chunks } = writeBody({ html, text, ...more });
  return { body: content, largeBody: chunks };
}

async function check(deps: InspectDeps, session: AuthEnvelope, raw: Uint8Array): Promise<Authentication> {
  const [ended, last] = [new AbortController(), new AbortController()];
  const timers = [
    deps.clock.after(AUTH_DEADLINE_MS, () => ended.abort()),
    deps.clock.after(AUTHOR_DEADLINE_MS, () => last.abort()),
  ];
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  const authentication = await authenticate(deps, session, bytes, ended.signal, last.signal);
  for (const cancel of timers) cancel();
  return authentication;
}

/** What can be said of a mail that could not be inspected: its header, in bounded time, and nothing of its sender. */
export function uninspected(host: string, { raw, session }: MailToInspect): Inspection {
  const authentication = session === null ? unchecked(host) : undecided(host);
  const mail = { ...headerOnly(raw), text: null, html: null, attachments: [] };
  return { mail: recorded(mail), contents: contentsOf(mail, null, raw), authentication };
}
