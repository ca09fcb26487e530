import type { Stage } from "./stage.ts";

/** The model's state, derived only from the API's promises. Times are milliseconds. */
export interface World {
  stage: Stage;
  accounts: readonly [Account, Account];
  /** Answers to POSTs that carried an Idempotency-Key. */
  kept: KeptAnswer[];
  /** The newest event and the newest webhook delivery that were checked. Ids sort as they are made. */
  seen: { event: string; delivery: string };
  /** Requests and turns so far, for the report of a failure. */
  trace: string[];
  /** Returns a number that was not used before. */
  next(): number;
}

export interface Account {
  id: string;
  owner: string;
  keys: Key[];
  projects: Project[];
}

export interface Key {
  id: string;
  secret: string;
  name: string;
  /** Null: account-wide. */
  project: Project | null;
  scopes: readonly string[];
  revokedAt: number | null;
  createdAt: number;
}

export interface Project {
  account: Account;
  id: string;
  externalId: string;
  name: string;
  dailyQuota: number | null;
  suspendedAt: number | null;
  /** Time from which it may send again. */
  liftedAt: number | null;
  createdAt: number;
  templates: Template[];
  contacts: Contact[];
  suppressions: Suppression[];
  webhooks: Webhook[];
  domains: Domain[];
  inboxes: Inbox[];
  threads: Thread[];
  messages: Message[];
  /** Recipients accepted by UTC day. */
  usage: Map<string, number>;
}

export interface Template {
  id: string;
  slug: string;
  name: string;
  subject: string;
  html: string | null;
  text: string | null;
  variables: readonly string[];
  createdAt: number;
  updatedAt: number;
}

export interface Contact {
  id: string;
  email: string;
  firstName: string | null;
  lastName: string | null;
  subscribed: boolean;
  unsubscribedAt: number | null;
  metadata: Record<string, unknown>;
  createdAt: number;
}

export interface Suppression {
  id: string;
  email: string;
  reason: "bounce" | "complaint" | "manual";
  bounceType: "hard" | "soft" | null;
  messageId: string | null;
  note: string | null;
  expiresAt: number | null;
  createdAt: number;
}

export interface Webhook {
  id: string;
  url: string;
  enabled: boolean;
  eventTypes: readonly string[];
  /** The secret, and the previous one during its grace period. */
  secret: string;
  former: { secret: string; until: number } | null;
  /** Start of its uninterrupted failures. */
  failingSince: number | null;
  deliveries: Delivery[];
}

export interface Delivery {
  id: string;
  type: string;
  messageId: string | null;
  status: "pending" | "succeeded" | "failed";
  attempts: number;
  /** The span of time in which the next attempt becomes due. */
  due: Span | null;
}

export interface Span {
  from: number;
  to: number;
}

export interface Domain {
  id: string;
  name: string;
  status: "pending" | "verified";
  receiving: boolean;
  /** Records as the API last showed them. */
  records: readonly { type: string; name: string; value: string }[];
  rotatedAt: number | null;
  createdAt: number;
}

export interface Inbox {
  id: string;
  domain: Domain;
  address: string;
  displayName: string;
  type: "sending" | "agent";
  createdAt: number;
}

export interface Thread {
  id: string;
  inbox: Inbox;
  subject: string;
  messages: Message[];
  lastMessageAt: number;
  createdAt: number;
  /** Times of replies, for their limit a minute. */
  replies: number[];
}

export interface Message {
  id: string;
  direction: "inbound" | "outbound";
  from: string;
  to: readonly string[];
  cc: readonly string[];
  bcc: readonly string[];
  subject: string;
  html: string | null;
  text: string | null;
  tags: readonly { name: string; value: string }[];
  templateId: string | null;
  unsubscribeLink: boolean;
  scheduledAt: number | null;
  recipients: Recipient[];
  thread: Thread | null;
  inboxId: string | null;
  /** The Message-ID, once it was seen. */
  rfcId: string | null;
  /** The template that the first send renders, or null if there is none or it is rendered. */
  template: Template | null;
  createdAt: number;
  /** Status of an inbound one. Of an outbound one, its recipients have it. */
  events: string[];
}

export type RecipientStatus =
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
  | "failed";

export interface Recipient {
  email: string;
  kind: "to" | "cc" | "bcc";
  status: RecipientStatus;
  reason: string | null;
  attempts: number;
  firstAttemptAt: number | null;
  due: Span | null;
  /** Its events in order, without `sending`. */
  events: Happened[];
}

export interface Happened {
  type: string;
  at: number;
  /** For an open or a click: whether a machine made it. */
  machine?: boolean;
}

export interface KeptAnswer {
  account: Account;
  project: Project | null;
  /** The key of the request, because an answer with a secret is only for that key. */
  by: Key;
  path: string;
  key: string;
  body: unknown;
  scope: string;
  status: number;
  text: string;
  at: number;
}

export const DAY_MS = 86_400_000;

export function projectsOf({ accounts }: World): Project[] {
  return accounts.flatMap(({ projects }) => projects);
}

/** Returns true if an address is suppressed at that time. */
export function isSuppressed(project: Project, email: string, now: number): boolean {
  const entry = suppressionOf(project, email);
  return entry !== undefined && (entry.expiresAt === null || entry.expiresAt > now);
}

export function suppressionOf(project: Project, email: string): Suppression | undefined {
  return project.suppressions.find((entry) => entry.email === email.toLowerCase());
}

/** Non-final states, the one shown first at the front, then final ones from the worst. */
const ROLL_UP: readonly RecipientStatus[] = [
  ...(["sending", "delivery_delayed", "queued", "accepted"] as const),
  ...(["complained", "bounced", "rendering_failure", "failed", "rejected", "sent", "delivered"] as const),
];

/** A message's status, derived from its recipients. */
export function statusOf({ direction, recipients }: Message): string {
  if (direction === "inbound") return "delivered";
  return ROLL_UP.find((status) => recipients.some((recipient) => recipient.status === status)) ?? "none";
}

/** Newer items come first in every list. */
export function newestFirst<Item>(items: readonly Item[]): Item[] {
  return [...items].reverse();
}
