import type { Key } from "../../core/crypto/key-ring.ts";
import { createPublicKey, type KeyObject, verify } from "node:crypto";
import {
  fieldsIn,
  givenBack,
  idOfMessageId,
  listIn,
  provenId,
  type RelayEvent,
  type RelayRequest,
  relayEvent,
  textIn,
} from "./relay-events.ts";

/** Name of the argument that SendGrid gives back. Its later events leave our Message-ID out. */
const ARGUMENT = "postrider";

/** Returns the field that makes SendGrid give back our id. */
export function sendgridFields(relayId: string, key: Key): string[] {
  return [`X-SMTPAPI: ${JSON.stringify({ unique_args: { [ARGUMENT]: provenId(relayId, key) } })}`];
}

/** Returns the key that SendGrid shows as base64 of DER; null if the text is no such P-256 key. */
export function sendgridKey(text: string): KeyObject | null {
  try {
    const key = createPublicKey({ key: Buffer.from(text, "base64"), format: "der", type: "spki" });
    return key.asymmetricKeyDetails?.namedCurve === "prime256v1" ? key : null;
  } catch {
    return null;
  }
}

/** Returns whether SendGrid has signed a request. */
export function isSignedBySendgrid({ bytes, header }: RelayRequest, publicKey: string): boolean {
  const key = sendgridKey(publicKey);
  const signature = header("x-twilio-email-event-webhook-signature");
  const timestamp = header("x-twilio-email-event-webhook-timestamp");
  if (key === null || signature === null || timestamp === null) return false;
  const signed = Buffer.concat([Buffer.from(timestamp), bytes]);
  return verify("sha256", signed, key, Buffer.from(signature, "base64"));
}

/** Reads a batch of SendGrid's events. */
export function readSendgrid(body: unknown, key: Key): RelayEvent[] {
  return listIn(body).flatMap((one) => readOne(one, key));
}

/** Addresses that SendGrid does not send to because they bounced before. */
const BOUNCED_BEFORE = /bounced address|invalid/i;

function readOne(value: unknown, key: Key): RelayEvent[] {
  const said = fieldsIn(value);
  const { event, email, response, reason, type } = said;
  const id = givenBack(said[ARGUMENT], key) ?? idOfMessageId(said["smtp-id"]);
  const diagnostic = textIn(response) ?? textIn(reason);
  switch (event) {
    case "delivered":
      return relayEvent("delivered", id, email, { diagnostic });
    case "deferred":
      return relayEvent("deferred", id, email, { diagnostic });
    case "spamreport":
      return relayEvent("complained", id, email);
    case "bounce": {
      const outcome = type === "blocked" ? "failed" : type === "expired" ? "soft" : "hard";
      return relayEvent("bounced", id, email, { diagnostic, outcome });
    }
    case "dropped": {
      const outcome = BOUNCED_BEFORE.test(diagnostic ?? "") ? "hard" : "failed";
      return relayEvent("bounced", id, email, { diagnostic, outcome });
    }
    default:
      return [];
  }
}
