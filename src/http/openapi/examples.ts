import type { TSchema } from "@sinclair/typebox";

/** Prefixes of ids, by the schema whose id it is or by the name of the field. */
const PREFIXES: Readonly<Record<string, string>> = {
  Account: "acc",
  Sender: "snd",
  senderId: "snd",
  "Me.project": "snd",
  "Me.key": "key",
  "Me.member": "mem",
  Member: "mem",
  MemberSession: "ses",
  ApiKey: "key",
  Template: "tpl",
  templateId: "tpl",
  Contact: "con",
  Message: "msg",
  MessageSummary: "msg",
  AcceptedMessage: "msg",
  rescheduleEmail: "msg",
  cancelEmail: "msg",
  replyToThread: "msg",
  lastMessageId: "msg",
  messageId: "msg",
  MessageEvent: "evt",
  eventId: "evt",
  Attachment: "att",
  Domain: "dom",
  DomainRecord: "rec",
  domainId: "dom",
  Inbox: "inb",
  inboxId: "inb",
  Thread: "thr",
  ListedThread: "thr",
  threadId: "thr",
  Suppression: "sup",
  Webhook: "whk",
  WebhookDelivery: "dlv",
  testWebhook: "dlv",
  replayWebhookDelivery: "dlv",
};

/** Examples by the names of schema and field. The example of a field's own schema is weaker. */
const FIELDS: Readonly<Record<string, unknown>> = {
  "MessageSummary.status": "delivered",
  "MessageSummary.direction": "outbound",
  "Message.status": "delivered",
  "Message.direction": "outbound",
  "Recipient.status": "delivered",
  "Message.threadId": null,
  "Message.inboxId": null,
  "Message.messageId": "<01k5x8q2m4@mail.example.com>",
  "Webhook.eventTypes": ["delivery", "bounce"],
  "MessageEvent.type": "delivery",
  "MessageEvent.data": {
    delivery: { mx: "mx.example.com", tls: "TLSv1.3", smtpCode: 250, response: "250 2.0.0 Ok: queued" },
  },
  "DeliveryAttempt.status": "bounced",
  "DeliveryAttempt.tls": null,
  "DeliveryAttempt.smtpCode": 550,
  "DeliveryAttempt.enhancedCode": "5.1.1",
  "DeliveryAttempt.diagnostic": "550 5.1.1 No such user",
  "DnsRecord.name": "pr1._domainkey.mail.example.com",
  "DnsRecord.verified": false,
  "DnsRecord.value": "k3v9d2.dkim.postrider.example",
  "Domain.receiving": false,
  "Domain.verifiedAt": null,
  "Domain.checkedAt": null,
  "Domain.authHealth": { dkim: "pending", spf: "pending", dmarc: "pending" },
  "DnsRecord.status": "missing",
  "DnsRecord.found": [],
  "DnsRecord.problem": "missing",
  "DnsRecord.fix": "k3v9d2.dkim.postrider.example",
  "Receiving.records": [
    {
      type: "MX",
      name: "mail.example.com",
      value: "mx.postrider.example",
      priority: 10,
      purpose: "inbound",
      verified: false,
    },
  ],
  "Thread.read": false,
  "Thread.archived": false,
  "Thread.hasAttachments": false,
  "Suppression.reason": "manual",
  "Suppression.messageId": null,
  "Template.name": "Order confirmation",
  "Template.subject": "Hello {{ name }}",
  "Template.text": null,
  "Template.html": "<p>Hello {{ name }}</p>",
  "RenderedTemplate.subject": "Hello Ana",
  "RenderedTemplate.html": "<p>Hello Ana</p>",
  "RenderedTemplate.text": null,
  "RenderedTemplate.missing": [],
  "ApiKey.name": "Production",
  "ApiKey.lastUsedAt": null,
  "Me.key.name": "Production",
  "Me.project.name": "Production",
  "Sender.name": "Production",
  "WebhookDelivery.type": "delivery",
  "WebhookDelivery.status": "succeeded",
  "WebhookDelivery.request.body": '{"id":"dlv_…","type":"delivery",…}',
  "Setting.name": "SERVICE_DOMAIN",
  "Setting.value": "postrider.example",
  "Setting.secret": false,
  "Setting.help": "The service's own DNS zone.",
  "Health.checks.name": "disk",
  "Health.checks.message": "12 GB are free.",
  "Stats.byDestination.domain": "example.com",
  "Stats.rates.bounce": 0.01,
};

/** Examples by the name of the field alone. An example in the field's schema takes precedence. */
const NAMES: Readonly<Record<string, unknown>> = {
  email: "ben@example.com",
  ownerEmail: "owner@example.com",
  address: "support@mail.example.com",
  from: "ana@mail.example.com",
  to: "ben@example.com",
  participants: "ben@example.com",
  name: "Ana",
  fromName: "Ana",
  firstName: "Ana",
  lastName: "Lima",
  displayName: "Support",
  subject: "Hello",
  text: "Hi Ben",
  html: "<p>Hi Ben</p>",
  preview: "Hi Ben",
  missing: "name",
  names: "mx.postrider.example",
  externalId: "customer-42",
  slug: "order-confirmation",
  variables: "name",
  note: "asked by phone",
  keyPrefix: "pr_8Kd02mQx",
  last4: "x7Qa",
  secret: "pr_8Kd02mQx_…",
  signingSecret: "whsec_…",
  url: "https://example.com/webhooks",
  domain: "mail.example.com",
  response: "ok",
  httpStatus: 200,
  mx: "mx.example.com",
  ip: "192.0.2.25",
  tls: "TLSv1.3",
  smtpCode: 250,
  enhancedCode: "2.0.0",
  diagnostic: "250 2.0.0 Ok: queued",
  attempt: 1,
  attempts: 1,
  size: 1204,
  durationMs: 420,
  messageCount: 2,
  filename: "hello.txt",
  contentType: "text/plain",
  limit: 1000,
  used: 12,
  delivery: "capture",
  reference: "https://postrider.example/docs",
  status: "queued",
  maxRecipients: 50,
  maxMessageBytes: 26_214_400,
  maxAttachments: 20,
  maxScheduleDays: 30,
  requestsPerSecond: 100,
  requestBurst: 200,
  recipientsPerDay: 2000,
  remaining: 988,
  accepted: 12,
  delivered: 11,
  bounced: 1,
  opened: 6,
  clicked: 2,
  received: 4,
  medianSeconds: 1.2,
  openapi: "https://postrider.example/docs/json",
  ready: "https://postrider.example/readyz",
};

/** Fields that are null in most answers. */
const MOSTLY_NULL: ReadonlySet<string> = new Set([
  "revokedAt",
  "suspendedAt",
  "unsubscribedAt",
  "expiresAt",
  "nextAttemptAt",
  "scheduledAt",
  "reason",
  "disabledReason",
  "failingSince",
  "error",
  "lastError",
  "contentId",
  "dailyQuota",
  "templateId",
  "data",
  "bounceType",
]);

/** Lists that are empty in most answers. */
const MOSTLY_EMPTY: ReadonlySet<string> = new Set(["cc", "bcc", "replyTo", "attachments", "tags"]);

/** Additions in the titles of schemas that add to another one: `NewApiKey` to `ApiKey`. */
const VARIANT = /^(?:New|Checked|Thread(?=Message))|Detail$/;

/** A string without a known example. It is better to give its schema `examples`. */
const UNKNOWN_TEXT = "…";

/** Returns an id of a kind as examples show it. */
export function exampleId(prefix: string): string {
  return `${prefix}_01k5x8q2m4e6r8t0v2w4y6z8a0`;
}

/**
 * Returns an example that fits the schema: one by name, its own, or one made of its parts. An object has its
 * required fields, and the optional ones that have an example.
 * @param name the schema or operation, and after a dot the field: `Domain.records.value`
 */
export function exampleOf(schema: TSchema, name: string): unknown {
  const field = name.slice(name.lastIndexOf(".") + 1);
  const variants = (schema.anyOf ?? []) as TSchema[];
  const parts = (schema.allOf ?? []) as TSchema[];
  if (name in FIELDS) return FIELDS[name];
  if (MOSTLY_NULL.has(field) && variants.some(({ type }) => type === "null")) return null;
  if (Array.isArray(schema.examples)) return schema.examples[0];
  for (const given of [schema.default, schema.const]) if (given !== undefined) return given;
  if (parts.length > 0) return Object.assign({}, ...parts.map((part) => exampleOf(part, name)));
  if (variants[0] !== undefined) return exampleOf(variants[0], name);
  if (schema.type === "object") return exampleObject(schema, name);
  if (schema.type === "array") return MOSTLY_EMPTY.has(field) ? [] : [exampleOf(schema.items, name)];
  if (schema.type === "boolean") return true;
  return exampleText(schema, name, field);
}

function exampleText(schema: TSchema, name: string, field: string): unknown {
  const owner = name.slice(0, -field.length - 1);
  const prefix = PREFIXES[field === "id" ? owner : field];
  if (prefix !== undefined) return exampleId(prefix);
  if (field in NAMES) return NAMES[field];
  if (schema.type === "integer" || schema.type === "number") return schema.minimum ?? 0;
  return UNKNOWN_TEXT;
}

function exampleObject(schema: TSchema, name: string): Record<string, unknown> {
  const properties: Record<string, TSchema> = schema.properties ?? {};
  const required: readonly string[] = schema.required ?? [];
  const owner = (schema.title ?? name).replace(VARIANT, "");
  const shown = Object.entries(properties).filter(
    ([field, property]) => required.includes(field) || Array.isArray(property.examples),
  );
  return Object.fromEntries(
    shown.map(([field, property]) => [field, exampleOf(property, `${owner}.${field}`)]),
  );
}
