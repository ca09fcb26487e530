/** The answers of the API, as far as the dashboard reads them. The reference at `/docs` has all fields. */

export type MessageStatus =
  | "accepted"
  | "queued"
  | "sending"
  | "sent"
  | "delivery_delayed"
  | "delivered"
  | "bounced"
  | "complained"
  | "rejected"
  | "rendering_failure"
  | "failed"
  | "inbound_rejected";

/** A page of a list. */
export interface Page<Item> {
  data: Item[];
  nextCursor: string | null;
}

/** `GET /v1/me`, and `GET /ui/session`. */
export interface Me {
  account: { id: string; ownerEmail: string };
  key: { id: string | null; name: string | null; scopes: string[]; senderId: string | null };
  project: {
    id: string;
    externalId: string;
    name: string;
    plan: string;
    trustTier: string;
    suspendedAt: string | null;
  } | null;
  service: { domain: string; delivery: "capture" | "relay" | "mx" };
  limits: {
    maxRecipients: number;
    maxMessageBytes: number;
    maxAttachments: number;
    maxScheduleDays: number;
  };
}

export interface Project {
  id: string;
  externalId: string;
  name: string;
  plan: string;
  trustTier: string;
  dailyQuota: number | null;
  tracking: { opens: boolean; clicks: boolean };
  textFromHtml: boolean;
  suspendedAt: string | null;
  createdAt: string;
}

export interface MessageSummary {
  id: string;
  from: string;
  to: string[];
  subject: string;
  status: MessageStatus;
  direction: "inbound" | "outbound";
  /** It waits until another key approves it. */
  awaitingApproval?: true;
  createdAt: string;
}

export interface Mailbox {
  email: string;
  name?: string;
}

export interface Attachment {
  id: string;
  filename: string;
  contentType: string;
  /** Bytes. */
  size: number;
  contentId: string | null;
  disposition: "attachment" | "inline";
}

export interface Recipient {
  email: string;
  kind: "to" | "cc" | "bcc";
  status: MessageStatus;
  reason: string | null;
  attempts: number;
  mx: string | null;
  tls: string | null;
  smtpCode: number | null;
  enhancedCode: string | null;
  diagnostic: string | null;
  lastEventAt: string | null;
}

export interface MessageEvent {
  id: string;
  type: string;
  createdAt: string;
  email: string | null;
  /** The type's own details under its name, e.g. `{bounce: {…}}`. */
  data: Record<string, unknown>;
}

export interface AuthResults {
  spf?: { result: string; domain?: string | null } | null;
  dkim?: { result: string; domain?: string | null; selector?: string | null }[] | null;
  dmarc?: { result: string; policy?: string | null; domain?: string | null } | null;
  arc?: { result: string } | null;
}

export interface Message extends MessageSummary {
  senderId: string;
  messageId: string | null;
  fromName: string | null;
  cc: string[];
  bcc: string[];
  replyTo: string[];
  html: string | null;
  text: string | null;
  headers: Record<string, string>;
  tags: { name: string; value: string }[];
  attachments: Attachment[];
  templateId: string | null;
  data: Record<string, unknown> | null;
  scheduledAt: string | null;
  sentAt: string | null;
  threadId: string | null;
  inboxId: string | null;
  size: number;
  testMode?: boolean;
  recipients: Recipient[];
  events: MessageEvent[];
  envelope?: { mailFrom?: string; rcptTo?: string[]; ip?: string; helo?: string; tls?: string | null } | null;
  auth?: AuthResults | null;
  replyText?: string | null;
  addresses: { from: Mailbox; to: Mailbox[]; cc: Mailbox[]; bcc: Mailbox[]; replyTo: Mailbox[] };
  links?: { url: string; text: string }[];
  codes?: string[];
  truncated?: true;
}

export interface Attempt {
  email: string;
  attempt: number;
  status: MessageStatus;
  startedAt: string;
  durationMs: number;
  mx: string | null;
  ip: string | null;
  tls: string | null;
  smtpCode: number | null;
  enhancedCode: string | null;
  diagnostic: string | null;
  lines: string[];
}

export interface Explanation {
  summary: string;
  recipients: {
    email: string;
    status: string;
    what: string;
    why: string;
    who: "you" | "recipient" | "provider" | "us" | "nobody";
    next: string;
  }[];
}

export interface Thread {
  id: string;
  inboxId: string;
  subject: string;
  preview: string;
  participants: string[];
  messageCount: number;
  hasAttachments: boolean;
  lastMessageId: string | null;
  lastMessageAt: string;
  lastInboundAt: string | null;
  read: boolean;
  archived: boolean;
  createdAt: string;
}

export interface Conversation extends Thread {
  messages: Message[];
}

export interface Inbox {
  id: string;
  domainId: string;
  address: string;
  displayName: string;
  type: "sending" | "agent";
  createdAt: string;
}

export interface Domain {
  id: string;
  domain: string;
  status: "pending" | "verified";
  receiving: boolean;
  createdAt: string;
}

export interface Figures {
  accepted: number;
  sent: number;
  delivered: number;
  delayed: number;
  bounced: number;
  complained: number;
  rejected: number;
  failed: number;
  opened: number;
  clicked: number;
  received: number;
}

export interface Stats {
  data: (Figures & { at: string })[];
  totals: Figures;
  rates: { bounce: number; complaint: number };
  byDestination: {
    domain: string;
    delivered: number;
    delayed: number;
    bounced: number;
    medianSeconds: number | null;
  }[];
}

export interface Health {
  status: "ok" | "warn" | "fail";
  checks: { name: string; status: "ok" | "warn" | "fail"; message: string; fix?: string }[];
  checkedAt: string;
}

export interface Setting {
  name: string;
  value: string | null;
  source: string;
  secret: boolean;
  /** True if there is a value. A secret shows only this. */
  set: boolean;
  help: string;
}

/** The body of a send, as far as the compose window writes it. */
export interface SendItem {
  from: Mailbox;
  to: Mailbox[];
  cc?: Mailbox[];
  bcc?: Mailbox[];
  replyTo?: Mailbox[];
  subject?: string;
  html?: string;
  text?: string;
  headers?: Record<string, string>;
  tags?: { name: string; value: string }[];
  attachments?: FileContent[];
  scheduledAt?: string;
}

export interface FileContent {
  filename: string;
  /** Base64. */
  content: string;
  contentType?: string;
  contentId?: string;
  disposition?: "attachment" | "inline";
}

/** An event of the live stream: the `data` of a webhook's envelope, with its type and id. */
export interface LiveEvent {
  id: string;
  type: string;
  messageId: string;
  email?: string;
  occurredAt: string;
  testMode?: boolean;
  [detail: string]: unknown;
}
