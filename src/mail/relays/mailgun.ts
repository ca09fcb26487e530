import { createHmac, timingSafeEqual } from "node:crypto";
import { DAY_MS } from "../../core/time/units.ts";
import {
  type Fields,
  fieldsIn,
  idOfMessageId,
  type RelayEvent,
  type RelayRequest,
  relayEvent,
  textIn,
} from "./relay-events.ts";

/** Oldest signature that counts. Mailgun repeats a request for 8 hours. */
const MAX_AGE_MS = DAY_MS;

/** Returns the token of a request that Mailgun has signed; null if it has not. The token tells requests apart. */
export function mailgunToken({ body, now }: RelayRequest, signingKey: string): string | null {
  const { timestamp, token, signature } = fieldsIn(fieldsIn(body).signature);
  if (typeof token !== "string" || typeof signature !== "string") return null;
  if (!/^\d{9,11}$/.test(String(timestamp)) || !/^[0-9a-f]{64}$/i.test(signature)) return null;
  if (Math.abs(now - Number(timestamp) * 1000) > MAX_AGE_MS) return null;
  const expected = createHmac("sha256", signingKey).update(`${timestamp}${token}`).digest();
  return timingSafeEqual(expected, Buffer.from(signature, "hex")) ? token : null;
}

/** Reasons of Mailgun's own lists, and of its patience. */
const REASONS: Readonly<Record<string, RelayEvent["outcome"]>> = {
  "suppress-bounce": "hard",
  "suppress-complaint": "failed",
  "suppress-unsubscribe": "failed",
  old: "soft",
};

/** Reads an event of Mailgun. */
export function readMailgun(body: unknown): RelayEvent[] {
  const said = fieldsIn(fieldsIn(body)["event-data"]);
  const { event, recipient, severity, reason } = said;
  const headers = fieldsIn(fieldsIn(said.message).headers);
  const id = idOfMessageId(headers["message-id"]);
  const status = fieldsIn(said["delivery-status"]);
  const more = { diagnostic: diagnosticOf(status), mx: textIn(status["mx-host"]) };
  if (event === "delivered") return relayEvent("delivered", id, recipient, more);
  if (event === "complained") return relayEvent("complained", id, recipient);
  if (event !== "failed") return [];
  if (severity === "temporary") return relayEvent("deferred", id, recipient, more);
  const named = Object.hasOwn(REASONS, String(reason)) ? REASONS[String(reason)] : undefined;
  return relayEvent("bounced", id, recipient, { ...more, outcome: named ?? "hard" });
}

/** Returns the reply of the recipient's server. Codes over 599 are Mailgun's own. */
function diagnosticOf({ code, message, description }: Fields): string | null {
  const text = textIn(message) ?? textIn(description) ?? "";
  const isReply = typeof code === "number" && code >= 200 && code <= 599;
  return textIn(isReply && !text.startsWith(String(code)) ? `${code} ${text}`.trim() : text);
}
