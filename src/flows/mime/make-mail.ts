import type { Key } from "../../core/crypto/key-ring.ts";
import { type Mailbox, splitAddress } from "../../core/addresses.ts";
import type { OpenTracking } from "../../core/messages/tracking.ts";
import { type ComposedMail, compose, type OutgoingAttachment } from "../../mail/composing/compose.ts";
import { textFromHtml } from "../../mail/composing/text-from-html.ts";
import type { ChangeText } from "../../mail/submitted/change-texts.ts";
import { forwardedMail } from "../../mail/submitted/forwarded.ts";
import type { ForwardedCopy } from "../../core/messages/forwarded.ts";
import { type AddedFields, outgoingMail, type WholeMail } from "../../mail/submitted/outgoing.ts";
import { type DkimSigning, signDkim } from "../../mail/auth/dkim.ts";
import { copyMessageId, ownMessageId } from "../../core/messages/message-id.ts";
import type { Stream } from "../../core/messages/send-item.ts";
import { trackedHtml, type TrackingLinks } from "./tracking-links.ts";
import { type UnsubscribeLinks, unsubscribeHeaders, withUnsubscribeUrl } from "./unsubscribe.ts";
import { createHash } from "node:crypto";
import { complaintAddress } from "../../core/own-names.ts";
import { recipientToken } from "./recipient-token.ts";

/** A message that cannot be composed because of its content. */
export class RenderingError extends Error {}

/** A message that cannot be signed, because its From domain was deleted. */
export class UnsignedError extends Error {}

/** Keys and addresses that all messages are made with. */
export interface MailLinks extends UnsubscribeLinks, TrackingLinks, StandingKeys {
  /** True if the links of delegated domains lead to hosts of theirs. */
  hostsDomains: boolean;
  /** True if the service signs each message too, next to its From domain. */
  serviceSignature: boolean;
}

export type Signing = Pick<DkimSigning, "domain" | "keys">;

/** One recipient's copy of a message, with all that its bytes depend on. */
export interface MailToMake {
  id: string;
  /** Number of the recipient. If null, the copy is only shown, with a placeholder for each recipient's link. */
  ord: number | null;
  from: Mailbox;
  to: Mailbox[];
  cc: Mailbox[];
  replyTo: Mailbox[];
  subject: string;
  html: string | null;
  text: string | null;
  /** If set, this message is sent in place of html, text and attachments. */
  whole: WholeMail | null;
  /** Set if a rule forwards `whole`, which then leaves as it came. */
  forward?: ForwardedCopy | null;
  headers: Record<string, string>;
  attachments: OutgoingAttachment[];
  /** Header Message-ID, with angle brackets. */
  rfcMessageId: string | null;
  /** True if this copy has a Message-ID that no other copy has. */
  hasOwnId: boolean;
  /** Milliseconds; also the time of the signature. */
  date: number;
  trackOpens: OpenTracking;
  trackClicks: boolean;
  unsubscribeLink: boolean;
  stream: Stream;
  /** The project. */
  senderId: string;
  /** Address that its links lead to, without a slash at its end: PUBLIC_URL, or the links host of the From domain. */
  linkUrl: string;
  /** True if a text part is made from the html when `text` is null. */
  textFromHtml: boolean;
  /** Keys of the From domain. If it has none any more, null: the copy is shown unsigned. */
  signing: Signing | null;
}

/**
 * Makes the bytes to send: composed, with the recipient's links, and DKIM-signed. Holds the thread for 50 ms per MiB.
 * @throws RenderingError
 */
export async function makeMail(links: MailLinks, mail: MailToMake): Promise<ComposedMail> {
  if (mail.whole !== null && mail.forward != null)
    return forwardedMail(mail.whole, mail.forward, mail.signing, mail.date);
  const composed = rendered(() =>
    mail.whole === null ? composeMail(links, mail) : wholeMail(links, mail, mail.whole),
  );
  if (mail.signing === null) return composed;
  const raw = await signDkim({ ...mail.signing, raw: composed.raw, signedAt: mail.date });
  return { ...composed, raw };
}

/** Makes a recipient's copy of a message that was submitted whole. */
function wholeMail(links: MailLinks, mail: MailToMake, whole: WholeMail): ComposedMail {
  const { id, ord } = mail;
  const own = unsubscribing(links, mail);
  const isTracked = ord !== null && (mail.trackOpens !== false || mail.trackClicks);
  const change: ChangeText = (text, kind, exact) => {
    const linked = mail.unsubscribeLink ? withUnsubscribeUrl(own, id, ord, text) : text;
    return ord === null || kind === "plain" ? linked : trackedHtml(links, mail, ord, linked, exact);
  };
  return outgoingMail(
    whole,
    {
      messageId: messageIdOf(links, mail),
      date: mail.date,
      own: mail.unsubscribeLink ? unsubscribeHeaders(own, id, ord) : [],
      unlessGiven: standingFields(links, { ...mail, signers: signersOf(mail) }),
      signers: signersOf(mail),
    },
    isTracked || mail.unsubscribeLink ? change : null,
  );
}

function signersOf({ signing }: MailToMake): AddedFields["signers"] {
  if (signing === null) return [];
  return signing.keys.map(({ domain = signing.domain, selector }) => ({ domain, selector }));
}

/** Returns the settings of unsubscribe links at the message's own address. */
function unsubscribing(
  { unsubscribeKey, serviceDomain }: MailLinks,
  { linkUrl: publicUrl }: MailToMake,
): UnsubscribeLinks {
  return { publicUrl, unsubscribeKey, serviceDomain };
}

function messageIdOf({ serviceDomain }: MailLinks, { rfcMessageId, id, ord, hasOwnId }: MailToMake): string {
  const shared = rfcMessageId ?? ownMessageId(id, serviceDomain);
  return hasOwnId && ord !== null ? copyMessageId(shared, id, ord) : shared;
}

function composeMail(links: MailLinks, mail: MailToMake): ComposedMail {
  const { id, ord } = mail;
  const unsubscribe = unsubscribing(links, mail);
  const own = <Part extends string | null>(part: Part) =>
    part === null || !mail.unsubscribeLink ? part : withUnsubscribeUrl(unsubscribe, id, ord, part);
  // A copy that is only shown has no tracking, so that a look at it does not count as a recipient's. An empty html part
  // has none either: with the picture in it, it would be shown instead of the text.
  const marked = (html: string | null): string | null =>
    html === null || html === "" || ord === null ? html : trackedHtml(links, mail, ord, html);
  const html = own(mail.html);
  return compose({
    ...mail,
    subject: own(mail.subject),
    text: mail.text === null ? madeText(mail, html) : own(mail.text),
    html: marked(html),
    extraHeaders: mail.unsubscribeLink ? unsubscribeHeaders(unsubscribe, id, ord) : [],
    unlessGiven: standingFields(links, { ...mail, signers: signersOf(mail) }),
    messageId: messageIdOf(links, mail),
  });
}

/** Returns the text part made from the html, whose links are those of the author, without tracking. */
function madeText({ textFromHtml: isWanted }: MailToMake, html: string | null): string | null {
  return isWanted && html !== null ? textFromHtml(html) : null;
}

/** Throws every error as one of the message's content. */
function rendered(compose: () => ComposedMail): ComposedMail {
  try {
    return compose();
  } catch (error) {
    throw new RenderingError(error instanceof Error ? error.message : String(error));
  }
}

/** Hexadecimal digits of the last part of Feedback-ID. Gmail takes 5 to 15 characters. */
const SENDER_DIGITS = 12;
/** The service's domain and the digits that name it: a process has one. */
let named = { domain: "", digits: "" };

function digits(domain: string): string {
  if (named.domain !== domain)
    named = {
      domain,
      digits: createHash("sha256").update(domain).digest("hex").slice(0, SENDER_DIGITS),
    };
  return named.digits;
}

interface StandingKeys {
  /** Domain of our Message-IDs and of the address for complaints. */
  serviceDomain: string;
  /** Authenticates the tokens in return paths and complaints. */
  verpKey: Key;
}

/** The facts of a message that its standing fields are made of. */
interface StandingFacts {
  id: string;
  /** Number of the recipient. Null: the copy is only shown. */
  ord: number | null;
  senderId: string;
  stream: Stream;
  from: Mailbox;
  unsubscribeLink: boolean;
  /** The signatures that will be made. */
  signers: readonly { domain: string }[];
}

/**
 * Returns the fields by which providers tell one kind of mail from another, for messages whose author gave none. Gmail counts complaints by
 * Feedback-ID: project, stream, and last the service. List-Id (RFC 2919) goes with one-click unsubscribing.
 */
function standingFields(keys: StandingKeys, facts: StandingFacts): [name: string, value: string][] {
  return [...feedbackFields(keys, facts), ...complaintFields(keys, facts)];
}

function feedbackFields(
  { serviceDomain }: StandingKeys,
  { senderId, stream, from, unsubscribeLink }: StandingFacts,
): [name: string, value: string][] {
  const feedbackId: [string, string] = ["Feedback-ID", `${senderId}:${stream}:${digits(serviceDomain)}`];
  const domain = splitAddress(from.email)?.domain;
  if (!unsubscribeLink || domain === undefined) return [feedbackId];
  return [feedbackId, ["List-Id", `<${senderId.replace("_", "-")}.${domain}>`]];
}

/**
 * Returns the fields that ask for complaints without enrolment. Providers report only to a domain that has signed them (RFC 9477 §3.1),
 * so they need the service's signature.
 */
function complaintFields(
  { serviceDomain, verpKey }: StandingKeys,
  { id, ord, signers }: StandingFacts,
): [name: string, value: string][] {
  if (!signers.some(({ domain }) => domain === serviceDomain)) return [];
  const token = ord === null ? id : recipientToken(verpKey, { messageId: id, ord });
  return [
    ["CFBL-Address", `${complaintAddress(serviceDomain)}; report=arf`],
    ["CFBL-Feedback-ID", token],
  ];
}
