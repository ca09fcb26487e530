import type { ForwardedCopy } from "../../core/messages/forwarded.ts";
import { domainOfName } from "../domains/wildcards.ts";
import { FROM_DOMAIN, IS_WHOLE, MESSAGES, type Message } from "./messages.ts";
import { IN_ORDER_OF_SIGNATURES } from "../domains/dkim-keys.ts";
import { HAS_HOSTS } from "../domains/domain-certificates.ts";
import type { ContentEncoding } from "../sql/content-values.ts";
import { type Contents, contentBytes, type StoredContent } from "../contents/content-read.ts";
import type { SigningKey } from "./sending.ts";
import type { MemoryBudget } from "../contents/memory-budget.ts";
import { bodyIn, NO_BODY } from "../contents/message-body.ts";

/** Fields of `messages` that composing and signing need. */
const FIELDS = [
  "from",
  "to",
  "cc",
  "bcc",
  "replyTo",
  "subject",
  "rfcMessageId",
  "templateId",
  "trackOpens",
  "trackClicks",
  "unsubscribeLink",
  "stream",
  "senderId",
  "textFromHtml",
  "testMode",
] as const satisfies readonly (keyof Message)[];

/** A message with all that composing and signing need, without the bytes of attachments and keys. */
export interface Outgoing extends Pick<Message, (typeof FIELDS)[number]>, Facts {
  /** True if html and text were rendered from the message's template. */
  rendered: boolean;
  html: string | null;
  text: string | null;
  /** The message that was submitted whole, in place of html, text and attachments; null if there is none. */
  whole: { bytes: Uint8Array; smtpUtf8: boolean } | null;
  /** Set if a rule forwards `whole`. */
  forward: ForwardedCopy | null;
  hasAttachments: boolean;
  /** The From domain and the times of its hosts' certificate; null unless they lead here and it has one. */
  host: { domain: string; servedFrom: number; notAfter: number } | null;
  /** The active DKIM keys of the From domain, in the order of their signatures. There are none if it is not a domain of the project. */
  keys: readonly ActiveKey[];
  /** The domain of the project that signs it: that of From, or one above it with a wildcard. Null if it is gone. */
  domain: string | null;
}

type ActiveKey = Pick<SigningKey, "token" | "createdAt">;

/** Fields that the query returns as they are. */
interface Facts {
  /** Milliseconds: when the message was posted, or the later time it was scheduled for. Each attempt uses it. */
  date: number;
  /** The values that its template is filled with. */
  data: Record<string, unknown> | null;
  headers: Record<string, string>;
}

interface FactsRow extends Facts, Pick<Outgoing, "host" | "domain" | "forward">, Record<string, unknown> {
  rendered: number;
  hasAttachments: number;
  keys: ActiveKey[];
  /** 1 if the message was submitted whole. */
  isWhole: number;
  smtpUtf8: number | null;
  body: BodyFacts;
}

/** The location of a message's body, or of the whole message if it was submitted whole. */
interface BodyFacts {
  /** 1 if the message names a content as its body. */
  named: number;
  /** null: the message names no content, or the content is gone. */
  storedIn: StoredContent["storedIn"] | null;
  encoding: ContentEncoding;
  size: number;
  /** In hexadecimal; null if the content is in one row. */
  key: string | null;
  object: string | null;
}

const CONTENT = `CASE WHEN ${IS_WHOLE} THEN c.raw ELSE c.body END`;

/**
 * One query, because it runs for each attempt. All but the body is one JSON column, because the client's cost of a row
 * grows with its columns. Addresses of ours have their domain in A-labels.
 */
const OUTGOING = `SELECT json_object(${MESSAGES.jsonPairs("m", FIELDS)},
    'date', MAX(m.created_at, COALESCE(m.scheduled_at, 0)), 'data', json(c.data),
    'rendered', c.rendered, 'headers', json(c.headers),
    'isWhole', ${IS_WHOLE}, 'smtpUtf8', json_extract(c.envelope, '$.smtpUtf8'), 'forward', c.envelope -> '$.forward',
    'hasAttachments', EXISTS (SELECT 1 FROM attachments a WHERE a.message_id = m.id),
    'host', CASE WHEN h.not_after IS NOT NULL
      THEN json_object('domain', d.name, 'servedFrom', h.served_from, 'notAfter', h.not_after) END,
    'domain', d.name, 'keys', json((SELECT json_group_array(json_object('token', k.token, 'createdAt', k.created_at))
      FROM (SELECT k.token, k.created_at FROM dkim_keys k WHERE k.domain_id = d.id AND k.status = 'active'
        ORDER BY ${IN_ORDER_OF_SIGNATURES}) k)),
    'body', json_object('named', ${CONTENT} IS NOT NULL, 'storedIn', b.stored_in, 'encoding', b.encoding, 'size', b.size,
      'key', CASE WHEN b.stored_in <> 'row' THEN hex(b.key) END, 'object', b.object)) AS facts, b.bytes
  FROM messages m
    JOIN message_content c ON c.message_id = m.id
    JOIN senders s ON s.id = m.sender_id
    LEFT JOIN contents b ON b.key = ${CONTENT}
    LEFT JOIN domains d
      ON d.id = ${domainOfName({ account: "s.account_id", project: "m.sender_id", name: FROM_DOMAIN })}
    LEFT JOIN certificates h ON h.id = d.id AND ${HAS_HOSTS}
  WHERE m.id = ? AND m.sender_id = ? AND m.direction = 'outbound'`;

/** Returns an outbound message of the project; null if the project has none with that id. */
export async function findOutgoing(
  deps: Contents,
  senderId: string,
  id: string,
  budget: MemoryBudget,
): Promise<Outgoing | null> {
  const row = await deps.db.first<{ facts: string; bytes: ArrayBuffer | null }>(OUTGOING, [id, senderId]);
  if (row === null) return null;
  const facts: FactsRow = JSON.parse(row.facts);
  const { date, data, headers, host, domain, keys, forward } = facts;
  const bytes = row.bytes === null ? null : new Uint8Array(row.bytes);
  const content = await contentOf(deps, facts.body, bytes, budget);
  const isWhole = facts.isWhole === 1 && content !== null;
  const { html, text } = content === null || isWhole ? NO_BODY : bodyIn(content);
  return {
    ...MESSAGES.fromJson(facts, FIELDS),
    date,
    data,
    headers,
    host,
    forward,
    html,
    text,
    domain,
    keys,
    whole: isWhole ? { bytes: content, smtpUtf8: facts.smtpUtf8 === 1 } : null,
    rendered: facts.rendered === 1,
    hasAttachments: facts.hasAttachments === 1,
  };
}

async function contentOf(
  deps: Contents,
  { named, storedIn, encoding, size, key, object }: BodyFacts,
  bytes: Uint8Array | null,
  budget: MemoryBudget,
): Promise<Uint8Array | null> {
  // A message that goes out late is better than an empty one.
  if (storedIn === null && named === 1) throw new Error("the content of a body is gone");
  if (storedIn === null) return null;
  const contentKey = Uint8Array.fromHex(key ?? "");
  const stored: StoredContent = { key: contentKey, size, encoding, storedIn, object, bytes };
  return contentBytes(deps, stored, budget);
}
