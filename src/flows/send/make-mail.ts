import type { KeyObject } from "node:crypto";
import type { Mailbox } from "../../core/addresses.ts";
import { type ComposedMail, compose, type OutgoingAttachment } from "../../mail/composing/compose.ts";
import { signDkim } from "../../mail/dkim.ts";
import { trackedHtml, type TrackingLinks } from "./tracking-links.ts";
import { type UnsubscribeLinks, unsubscribeHeaders, withUnsubscribeUrl } from "./unsubscribe.ts";

/** A message that cannot be composed, or no longer: the fault of its content, not of a peer. */
export class RenderingError extends Error {}

/** A mail that nobody signs any more: its From domain was deleted. */
export class UnsignedError extends Error {}

/** What every mail is made with. */
export interface MailLinks extends UnsubscribeLinks, TrackingLinks {
  /** Domain of our own Message-IDs. */
  serviceDomain: string;
}

/** What a mail is signed with. */
export interface Signing {
  domain: string;
  selector: string;
  privateKey: KeyObject;
}

/** One recipient's copy of a message, with all that its bytes depend on. */
export interface MailToMake {
  id: string;
  /** The recipient it is for; null: nobody's, with a link in the place of each recipient's own. */
  ord: number | null;
  from: Mailbox;
  to: Mailbox[];
  cc: Mailbox[];
  replyTo: Mailbox[];
  subject: string;
  html: string | null;
  text: string | null;
  headers: Record<string, string>;
  attachments: OutgoingAttachment[];
  /** Header Message-ID, with angle brackets. */
  rfcMessageId: string | null;
  /** Milliseconds; the time of the signature as well. */
  date: number;
  trackOpens: boolean;
  trackClicks: boolean;
  unsubscribeLink: boolean;
  /** Of the From domain; null: shown unsigned, since that has no key any more. */
  signing: Signing | null;
}

/**
 * The bytes to put on the wire: composed, with the recipient's links, and DKIM-signed. It holds the thread for 50 ms a MiB.
 * @throws RenderingError
 */
export async function makeMail(links: MailLinks, mail: MailToMake): Promise<ComposedMail> {
  const composed = composeMail(links, mail);
  if (mail.signing === null) return composed;
  const raw = await signDkim({ ...mail.signing, raw: composed.raw, signedAt: mail.date });
  return { ...composed, raw };
}

function composeMail(links: MailLinks, mail: MailToMake): ComposedMail {
  const { id, ord } = mail;
  const own = <Part extends string | null>(part: Part) =>
    part === null || !mail.unsubscribeLink ? part : withUnsubscribeUrl(links, id, ord, part);
  // Nobody's copy has nobody's marks: a look at it must not be taken for a recipient's. And an empty html, which is left out,
  // has none: with a picture in it, it would be shown in place of the text.
  const marked = (html: string | null): string | null =>
    html === null || html === "" || ord === null ? html : trackedHtml(links, mail, ord, html);
  try {
    return compose({
      ...mail,
      subject: own(mail.subject),
      text: own(mail.text),
      html: marked(own(mail.html)),
      extraHeaders: mail.unsubscribeLink ? unsubscribeHeaders(links, id, ord) : [],
      messageId: mail.rfcMessageId ?? `<${id}@${links.serviceDomain}>`,
    });
  } catch (error) {
    throw new RenderingError(error instanceof Error ? error.message : String(error));
  }
}
