/** Scopes of keys. A key without scopes has all of them. */
export const SCOPES = [
  "emails:send",
  "emails:read",
  "emails:approve",
  "templates:read",
  "templates:write",
  "contacts:read",
  "contacts:write",
  "domains:read",
  "domains:write",
  "inboxes:read",
  "inboxes:write",
  "threads:read",
  "threads:reply",
  "suppressions:read",
  "suppressions:write",
  "webhooks:read",
  "webhooks:write",
  "api_keys:read",
  "api_keys:write",
  "senders:read",
  "senders:write",
  "metrics:read",
  "audit:read",
  "data:delete",
] as const;

export type Scope = (typeof SCOPES)[number];
