// Lists of the API. The dashboard imports nothing of the server, so a test compares them.

/** Event types, which streams and webhooks name. An EventSource hands out named events by name only. */
export const EVENT_TYPES: readonly string[] = [
  "accepted",
  "queued",
  "sending",
  "sent",
  "delivery_delayed",
  "delivery",
  "bounce",
  "complaint",
  "rejected",
  "rendering_failure",
  "failed",
  "open",
  "click",
  "unsubscribed",
  "inbound_received",
  "inbound_rejected",
];

/** Scopes of keys. */
export const SCOPES: readonly string[] = [
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
];
