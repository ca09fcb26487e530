import { verify, X509Certificate } from "node:crypto";
import {
  type Fields,
  fieldsIn,
  type GetDocument,
  listIn,
  type RelayEvent,
  type RelayRequest,
  relayEvent,
  textIn,
} from "./relay-events.ts";

// Amazon SES reports through an SNS topic. Anyone may make a topic that posts anywhere, so a signature of SNS proves
// nothing unless the topic is the one that the route names.

const TOPIC_ARN = /^arn:(aws|aws-cn|aws-us-gov):sns:([a-z0-9-]{3,40}):(\d{12}):[\w-]{1,256}$/;
/** Its reply to a message: `Ok 0102018f5e6a7b3c-1a2b…-000000`. */
const REPLY = /^ok ([\da-f]{10,40}-[\da-f-]{10,80})$/i;

/** Returns whether a text names an SNS topic. */
export function isTopicArn(text: string): boolean {
  return TOPIC_ARN.test(text);
}

/** Returns the id that SES gave a message in its reply. */
export function idInReply(text: string): string | null {
  return REPLY.exec(text)?.[1] ?? null;
}

/** Returns the only host that may sign for a topic, and confirm its subscriptions. */
function hostOf(topicArn: string): string {
  const [, partition = "", region = ""] = TOPIC_ARN.exec(topicArn) ?? [];
  return `sns.${region}.amazonaws.com${partition === "aws-cn" ? ".cn" : ""}`;
}

const CERTIFICATE_PATH = /^\/SimpleNotificationService-[0-9a-f]{1,64}\.pem$/;

/** Fields that are signed, by the type of a message. `Subject` is left out if it is absent. */
const SIGNED: Readonly<Record<string, readonly string[]>> = {
  Notification: ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"],
  SubscriptionConfirmation: [
    "Message",
    "MessageId",
    "SubscribeURL",
    "Timestamp",
    "Token",
    "TopicArn",
    "Type",
  ],
};
const HASHES: Readonly<Record<string, string>> = { "1": "RSA-SHA1", "2": "RSA-SHA256" };

/** Returns whether SNS has signed a message of the topic. The certificate comes from the topic's own region. */
export async function isSignedBySns(
  { body, now }: RelayRequest,
  topicArn: string,
  get: GetDocument,
): Promise<boolean> {
  const message = fieldsIn(body);
  const names = SIGNED[String(message.Type)];
  const hash = HASHES[String(message.SignatureVersion)];
  if (names === undefined || hash === undefined || message.TopicArn !== topicArn) return false;
  const url = String(message.SigningCertURL);
  if (!URL.canParse(url) || !isCertificateUrl(new URL(url), topicArn)) return false;
  const pem = await get(url);
  const certificate = pem === null ? null : certificateIn(pem);
  if (certificate === null || certificate.validFromDate.getTime() > now) return false;
  if (certificate.validToDate.getTime() < now) return false;
  const signature = Buffer.from(String(message.Signature), "base64");
  return verify(hash, Buffer.from(signedText(message, names)), certificate.publicKey, signature);
}

function isCertificateUrl({ protocol, host, pathname, username, search }: URL, topicArn: string): boolean {
  const isPlain = protocol === "https:" && username === "" && search === "";
  return isPlain && host === hostOf(topicArn) && CERTIFICATE_PATH.test(pathname);
}

function certificateIn(pem: Uint8Array): X509Certificate | null {
  try {
    return new X509Certificate(pem);
  } catch {
    return null;
  }
}

function signedText(message: Fields, names: readonly string[]): string {
  const present = names.filter((name) => message[name] !== undefined && message[name] !== null);
  return present.map((name) => `${name}\n${message[name]}\n`).join("");
}

/** Returns the URL that confirms a subscription; null if the message asks for none. It is made here, not taken over. */
export function confirmationUrl(body: unknown, topicArn: string): string | null {
  const { Type, Token } = fieldsIn(body);
  if (Type !== "SubscriptionConfirmation" || typeof Token !== "string") return null;
  const query = new URLSearchParams({ Action: "ConfirmSubscription", TopicArn: topicArn, Token });
  return `https://${hostOf(topicArn)}/?${query}`;
}

/** Reads what SES says, which is JSON text within the message of SNS. */
export function readSes(body: unknown): RelayEvent[] {
  const { Type, Message } = fieldsIn(body);
  if (Type !== "Notification" || typeof Message !== "string") return [];
  const said = fieldsIn(parsed(Message));
  const mail = fieldsIn(said.mail);
  const id = textIn(mail.messageId);
  switch (said.eventType ?? said.notificationType) {
    case "Delivery": {
      const { recipients, smtpResponse, remoteMtaIp } = fieldsIn(said.delivery);
      const more = { diagnostic: textIn(smtpResponse), mx: textIn(remoteMtaIp) };
      return listIn(recipients).flatMap((email) => relayEvent("delivered", id, email, more));
    }
    case "DeliveryDelay":
      return delays(id, fieldsIn(said.deliveryDelay));
    case "Bounce":
      return bounces(id, fieldsIn(said.bounce));
    case "Complaint":
      return complaints(id, fieldsIn(said.complaint));
    case "Reject": {
      const more = { outcome: "failed", diagnostic: textIn(fieldsIn(said.reject).reason) } as const;
      return listIn(mail.destination).flatMap((email) => relayEvent("bounced", id, email, more));
    }
    default:
      return [];
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function delays(id: string | null, { delayedRecipients }: Fields): RelayEvent[] {
  return listIn(delayedRecipients).flatMap((one) => {
    const { emailAddress, diagnosticCode } = fieldsIn(one);
    return relayEvent("deferred", id, emailAddress, { diagnostic: diagnostic(diagnosticCode) });
  });
}

/** Bounces that SES calls transient although they are about the message. */
const ABOUT_MESSAGE: ReadonlySet<unknown> = new Set([
  "ContentRejected",
  "AttachmentRejected",
  "MessageTooLarge",
]);

function bounces(id: string | null, { bounceType, bounceSubType, bouncedRecipients, remoteMtaIp }: Fields) {
  const usual = bounceType === "Permanent" ? "hard" : "soft";
  const outcome = ABOUT_MESSAGE.has(bounceSubType) ? "failed" : usual;
  return listIn(bouncedRecipients).flatMap((one) => {
    const { emailAddress, diagnosticCode } = fieldsIn(one);
    const more = { outcome, diagnostic: diagnostic(diagnosticCode), mx: textIn(remoteMtaIp) } as const;
    return relayEvent("bounced", id, emailAddress, more);
  });
}

function complaints(id: string | null, said: Fields): RelayEvent[] {
  const { complainedRecipients, complaintFeedbackType, complaintSubType } = said;
  // With a subtype nobody has complained now: SES has not sent the message, because of an earlier complaint.
  const kind = textIn(complaintSubType) === null ? "complained" : "bounced";
  const more = { outcome: "failed", feedbackType: textIn(complaintFeedbackType) ?? "abuse" } as const;
  return listIn(complainedRecipients).flatMap((one) =>
    relayEvent(kind, id, fieldsIn(one).emailAddress, more),
  );
}

/** Returns a diagnostic without its type: `smtp; 550 5.1.1 user unknown`. */
function diagnostic(code: unknown): string | null {
  return textIn(typeof code === "string" ? code.replace(/^smtp; ?/i, "") : null);
}
