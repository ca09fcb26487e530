import type { components, operations } from "../../../sdk/src/api.ts";

/** The bodies of the API, by the names of its reference. Only types are taken from the SDK, so the bundle has nothing of it. */
type Schemas = components["schemas"];

export interface Page<Item> {
  data: Item[];
  nextCursor: string | null;
}

export type Me = Schemas["Me"];
export type Project = Schemas["Sender"];
export type Member = Schemas["Member"];
export type MemberSession = Schemas["MemberSession"];
export type Message = Schemas["Message"];
export type MessageSummary = Schemas["MessageSummary"];
export type MessageStatus = MessageSummary["status"];
export type Mailbox = Schemas["MailAddress"];
export type Attachment = Schemas["Attachment"];
export type Recipient = Schemas["Recipient"];
export type MessageEvent = Schemas["MessageEvent"];
export type Attempt = Schemas["DeliveryAttempt"];
export type Explanation = Schemas["Explanation"];
export type Thread = Schemas["ListedThread"];
export type ThreadChanges = Schemas["ThreadChanges"];
/** A draft with everything that is written. */
export type DraftRecord = Schemas["Draft"];
export type DraftSummary = Schemas["DraftSummary"];
/** The labels in use, and the members whom threads can be assigned to. */
export type Labelling = Schemas["Mailbox"];
export type Conversation = operations["getThread"]["responses"][200]["content"]["application/json"];
export type Inbox = Schemas["Inbox"];
export type ListedSender = Schemas["ListedSender"];
export type Rule = Schemas["Rule"];
export type RuleTrial = Schemas["RuleTrial"];
export type ForwardAddress = Schemas["ForwardAddress"];
export type Stats = Schemas["Stats"];
export type Figures = Stats["totals"];
export type Health = Schemas["Health"];
export type Lane = Schemas["Lane"];
/** A way out for mail. */
export type OutRoute = Schemas["Route"];
export type Setting = Schemas["Setting"];
export type Domain = Schemas["Domain"];
/** A domain as a check returns it. */
export type CheckedDomain = Schemas["CheckedDomain"];
export type DnsRecord = Schemas["DnsRecord"];
/** A record after a check, with what the DNS has in its place. */
export type CheckedRecord = Schemas["CheckedDnsRecord"];
export type Receiving = Schemas["Receiving"];
export type ReportRow = Schemas["ReportRow"];
export type PolicyAdvice = Schemas["PolicyAdvice"];
export type Webhook = Schemas["Webhook"];
export type Delivery = Schemas["WebhookDelivery"];
export type DeliveryDetail = Schemas["WebhookDeliveryDetail"];
export type ApiKey = Schemas["ApiKey"];
export type Template = Schemas["Template"];
export type Rendered = Schemas["RenderedTemplate"];
export type Contact = Schemas["Contact"];
export type ContactProperty = Schemas["ContactProperty"];
export type Topic = Schemas["Topic"];
export type Segment = Schemas["Segment"];
export type SegmentCount = Schemas["SegmentCount"];
export type Broadcast = Schemas["Broadcast"];
export type BroadcastSummary = Schemas["BroadcastSummary"];
export type BroadcastRecipient = Schemas["BroadcastRecipient"];
export type BroadcastResults = Schemas["BroadcastResults"];
export type BroadcastCheck = Schemas["BroadcastCheck"];
export type AskedLinks = operations["checkBroadcastLinks"]["responses"][200]["content"]["application/json"];
export type AuditEntry = Schemas["AuditEntry"];
export type Notice = Schemas["Notice"];
export type AccountSettings = Schemas["AccountSettings"];
export type Import = Schemas["Import"];
export type ImportPreview = Schemas["ImportPreview"];
export type Suppression = Schemas["Suppression"];
export type FileContent = Schemas["SendAttachment"];
/** The body of a send, as the compose window writes it. */
export type SendItem = Omit<Schemas["SendItem"], "from" | "to" | "cc" | "bcc" | "replyTo"> & {
  from: Mailbox;
  to: Mailbox[];
} & { [List in "cc" | "bcc" | "replyTo"]?: Mailbox[] };

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
