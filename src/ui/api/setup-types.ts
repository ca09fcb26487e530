/** The answers of the API about domains, webhooks, keys and templates, as far as the dashboard reads them. */

export interface DnsRecord {
  type: "CNAME" | "TXT" | "MX";
  name: string;
  value: string;
  priority?: number;
  purpose: "dkim" | "spf" | "dmarc" | "inbound";
  verified: boolean;
}

/** A record after a check, with what the DNS has in its place. */
export interface CheckedRecord extends DnsRecord {
  status: "verified" | "missing" | "wrong" | "spreading" | "unknown";
  found: string[];
  problem: string | null;
  /** The value to publish; null if nothing is wrong. */
  fix: string | null;
}

export interface FullDomain {
  id: string;
  domain: string;
  status: "pending" | "verified";
  verifiedBy: "dns" | "capture" | null;
  receiving: boolean;
  verifiedAt: string | null;
  checkedAt: string | null;
  createdAt: string;
  records: (DnsRecord | CheckedRecord)[];
}

export interface Receiving {
  enabled: boolean;
  records: DnsRecord[];
}

export interface Webhook {
  id: string;
  url: string;
  enabled: boolean;
  eventTypes: string[];
  content: boolean;
  /** Empty unless it was just created or rotated. */
  signingSecret: string;
  disabledReason: string | null;
  createdAt: string;
}

export interface Delivery {
  id: string;
  type: string;
  messageId: string | null;
  status: "pending" | "succeeded" | "failed";
  attempts: number;
  nextAttemptAt: string | null;
  lastAttemptAt: string | null;
  httpStatus: number | null;
  error: string | null;
  createdAt: string;
}

export interface DeliveryDetail extends Delivery {
  attemptLog: { at: string; httpStatus: number | null; response: string | null; error: string | null }[];
  request: { url: string; body: string | null };
}

export interface ApiKey {
  id: string;
  name: string;
  keyPrefix: string;
  last4: string;
  senderId: string | null;
  senderExternalId?: string;
  /** Empty: all. */
  scopes: string[];
  allowRecipients: string[] | null;
  approval: boolean;
  lastUsedAt: string | null;
  revokedAt: string | null;
  createdAt: string;
}

export interface Template {
  id: string;
  slug: string;
  name: string;
  subject: string;
  html: string | null;
  text: string | null;
  variables: string[];
  createdAt: string;
  updatedAt: string;
}

export interface Rendered {
  subject: string;
  html: string | null;
  text: string | null;
  /** Variables that the data lacks. */
  missing: string[];
}
