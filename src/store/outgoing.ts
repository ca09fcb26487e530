import type { Mailbox } from "../core/addresses.ts";
import { FROM_DOMAIN, storedMailbox } from "./mailbox.ts";
import type { ContentEncoding } from "./engine/content-values.ts";
import { type ContentDeps, contentBytes, type StoredContent } from "./contents/content-read.ts";
import { bodyIn, bodyInline, type MessageBody, NO_BODY } from "./contents/message-body.ts";

/** A message with all that composing and signing it takes, but the bytes of attachments and keys. */
export interface Outgoing {
  from: Mailbox;
  to: Mailbox[];
  cc: Mailbox[];
  replyTo: Mailbox[];
  subject: string;
  /** Header Message-ID, with angle brackets. */
  rfcMessageId: string | null;
  /** Milliseconds: when it was posted, or the later time it was scheduled for. The same at each try. */
  date: number;
  templateId: string | null;
  /** What its template is filled with. */
  data: Record<string, unknown> | null;
  /** Whether html and text are what the message's template became. */
  rendered: boolean;
  html: string | null;
  text: string | null;
  headers: Record<string, string>;
  trackOpens: boolean;
  trackClicks: boolean;
  unsubscribeLink: boolean;
  hasAttachments: boolean;
  /** The active DKIM key of its From domain; null where the project has no such domain, or the domain no such key. */
  key: { token: string; selector: string; createdAt: number } | null;
}

interface Row {
  facts: string;
  bytes: ArrayBuffer | null;
}

/** What `facts` holds beside the fields that are as they are in `Outgoing`. */
interface Facts
  extends Pick<
    Outgoing,
    "to" | "cc" | "replyTo" | "subject" | "rfcMessageId" | "date" | "templateId" | "data" | "headers"
  > {
  fromEmail: string;
  fromName: string | null;
  rendered: number;
  trackOpens: number;
  trackClicks: number;
  unsubscribeLink: number;
  hasAttachments: number;
  keyToken: string | null;
  keyCreatedAt: number | null;
  keySelector: string | null;
  body: BodyFacts;
}

/** Where a body is. */
interface BodyFacts {
  /** Whether it stands in the message's own row. */
  inline: number;
  /** Whether a content is named. */
  named: number;
  /** null: it is no content, or one that is not there. */
  place: StoredContent["place"] | null;
  encoding: ContentEncoding;
  size: number;
  /** Of a content that is not in one row, in hexadecimal. */
  key: string | null;
  object: string | null;
}

/**
 * In one read, since it is made for each attempt of all mail, and as one column but for the body: the client's cost
 * of a row grows with its columns. The domain of an address of ours is in A-labels.
 */
const OUTGOING = `SELECT json_object('fromEmail', m.from_email, 'fromName', m.from_name, 'to', json(m.to_list),
    'cc', json(m.cc_list), 'replyTo', json(m.reply_to_list), 'subject', m.subject,
    'rfcMessageId', m.rfc_message_id, 'date', MAX(m.created_at, COALESCE(m.scheduled_at, 0)), 'templateId', m.template_id, 'data', json(c.data),
    'rendered', c.rendered, 'headers', json(c.headers), 'trackOpens', m.track_opens, 'trackClicks', m.track_clicks,
    'unsubscribeLink', m.unsubscribe_link,
    'hasAttachments', EXISTS (SELECT 1 FROM attachments a WHERE a.message_id = m.id),
    'keyToken', k.token, 'keyCreatedAt', k.created_at, 'keySelector', k.selector,
    'body', json_object('inline', c.inline_body IS NOT NULL, 'named', c.body IS NOT NULL, 'place', b.place, 'encoding', b.encoding, 'size', b.size,
      'key', CASE WHEN b.place <> 'row' THEN hex(b.key) END, 'object', b.object)) AS facts, COALESCE(c.inline_body, b.bytes) AS bytes
  FROM messages m
    JOIN message_content c ON c.message_id = m.id
    JOIN senders s ON s.id = m.sender_id
    LEFT JOIN contents b ON b.key = c.body
    LEFT JOIN domains d ON d.account_id = s.account_id AND d.sender_id = m.sender_id
      AND d.name = ${FROM_DOMAIN}
    LEFT JOIN dkim_keys k ON k.domain_id = d.id AND k.status = 'active'
  WHERE m.id = ? AND m.sender_id = ? AND m.direction = 'outbound'`;

/** An outbound message of the project as it goes out; null where it has none of that id. */
export async function findOutgoing(
  deps: ContentDeps,
  senderId: string,
  id: string,
): Promise<Outgoing | null> {
  const row = await deps.db.first<Row>(OUTGOING, [id, senderId]);
  if (row === null) return null;
  const { fromEmail, fromName, keyToken, keyCreatedAt, keySelector, body, ...facts }: Facts = JSON.parse(
    row.facts,
  );
  const bytes = row.bytes === null ? null : new Uint8Array(row.bytes);
  const { html, text } = await bodyOf(deps, body, bytes);
  return {
    ...facts,
    from: storedMailbox(fromEmail, fromName),
    html,
    text,
    rendered: facts.rendered === 1,
    trackOpens: facts.trackOpens === 1,
    trackClicks: facts.trackClicks === 1,
    unsubscribeLink: facts.unsubscribeLink === 1,
    hasAttachments: facts.hasAttachments === 1,
    key:
      keyToken === null || keyCreatedAt === null || keySelector === null
        ? null
        : { token: keyToken, createdAt: keyCreatedAt, selector: keySelector },
  };
}

async function bodyOf(
  deps: ContentDeps,
  { inline, named, place, encoding, size, key, object }: BodyFacts,
  bytes: Uint8Array | null,
): Promise<MessageBody> {
  if (inline === 1 && bytes !== null) return bodyInline(bytes);
  // Better late than empty.
  if (place === null && named === 1) throw new Error("the content of a body is gone");
  if (place === null) return NO_BODY;
  const contentKey = Uint8Array.fromHex(key ?? "");
  return bodyIn(await contentBytes(deps, { key: contentKey, size, encoding, place, object, bytes }));
}
