import type { Clock } from "../../core/clock.ts";
import {
  type AuthDeps,
  type Authentication,
  type AuthEnvelope,
  authenticate,
  unchecked,
  undecided,
} from "../../mail/authenticate.ts";
import { headerOnly, type ParsedAttachment, type ParsedMail, parseMail } from "../../mail/parse.ts";
import { replyText } from "../../mail/reply-text.ts";

/** Time that the checks of one mail may wait for name servers; what is not known by then is `temperror`. */
export const AUTH_DEADLINE_MS = 10_000;

/** A mail as it came, and the session that brought it. */
export interface MailToInspect {
  raw: Uint8Array;
  /** null for a mail that came from nowhere: there is nothing to check. */
  session: AuthEnvelope | null;
}

/** A mail as it is recorded: of an attachment, what it is called and how large it is. */
export interface ReadMail extends Omit<ParsedMail, "attachments"> {
  attachments: Omit<ParsedAttachment, "bytes">[];
}

/** All that is found out about a mail before it is taken. */
export interface Inspection {
  mail: ReadMail;
  /** The new part of a reply; null where that is the whole text, but for white space around it. */
  replyText: string | null;
  authentication: Authentication;
}

export interface InspectDeps extends AuthDeps {
  clock: Clock;
}

/** Checks who sent a mail, and reads it. Never throws. It holds the thread for as long as reading takes. */
export async function inspectMail(deps: InspectDeps, { raw, session }: MailToInspect): Promise<Inspection> {
  // The name servers' time is used for reading.
  const checking = session === null ? unchecked(deps.host) : check(deps, session, raw);
  const { attachments, ...mail } = await parseMail(raw);
  const reply = mail.text === null ? null : replyText(mail.text);
  return {
    mail: { ...mail, attachments: attachments.map(({ bytes: _, ...shown }) => shown) },
    replyText: reply?.trim() === mail.text?.trim() ? null : reply,
    authentication: await checking,
  };
}

async function check(deps: InspectDeps, session: AuthEnvelope, raw: Uint8Array): Promise<Authentication> {
  const ended = new AbortController();
  const cancel = deps.clock.after(AUTH_DEADLINE_MS, () => ended.abort());
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  const authentication = await authenticate(deps, session, bytes, ended.signal);
  cancel();
  return authentication;
}

/** What can be said of a mail that could not be inspected: its header, in bounded time, and nothing of its sender. */
export function uninspected(host: string, { raw, session }: MailToInspect): Inspection {
  const authentication = session === null ? unchecked(host) : undecided(host);
  return { mail: { ...headerOnly(raw), attachments: [] }, replyText: null, authentication };
}
