import type { Key } from "../../core/crypto/key-ring.ts";
import {
  fieldsIn,
  givenBack,
  idOfMessageId,
  provenId,
  type RelayEvent,
  relayEvent,
  textIn,
} from "./relay-events.ts";

/** Name of the metadata that Postmark gives back. Its own id is in no reply, and it replaces our Message-ID unless asked. */
const METADATA = "postrider";

/** Returns the fields that make Postmark keep our Message-ID and give back our id. */
export function postmarkFields(relayId: string, key: Key): string[] {
  return ["X-PM-KeepID: true", `X-PM-Metadata-${METADATA}: ${provenId(relayId, key)}`];
}

/** What Postmark's types of a bounce mean; it has types for what is none, such as automatic replies. */
const TYPES: Readonly<Record<string, RelayEvent["outcome"] | "deferred" | "complained">> = {
  HardBounce: "hard",
  BadEmailAddress: "hard",
  SoftBounce: "soft",
  Unknown: "soft",
  ChallengeVerification: "soft",
  Transient: "deferred",
  DnsError: "deferred",
  SpamComplaint: "complained",
  Blocked: "failed",
  DMARCPolicy: "failed",
  ManuallyDeactivated: "failed",
  SMTPApiError: "failed",
  SpamNotification: "failed",
  TemplateRenderingFailed: "failed",
  VirusNotification: "failed",
};

/** Reads an event of Postmark. */
export function readPostmark(body: unknown, key: Key): RelayEvent[] {
  const { RecordType, Metadata, MessageID, Recipient, Email, Details, Type } = fieldsIn(body);
  // The name comes back in the case that Postmark chooses.
  const own = Object.entries(fieldsIn(Metadata)).find(([name]) => name.toLowerCase() === METADATA);
  const id = givenBack(own?.[1], key) ?? idOfMessageId(MessageID);
  const diagnostic = textIn(Details);
  if (RecordType === "Delivery") return relayEvent("delivered", id, Recipient, { diagnostic });
  if (RecordType === "SpamComplaint") return relayEvent("complained", id, Email);
  if (RecordType !== "Bounce") return [];
  const meaning = Object.hasOwn(TYPES, String(Type)) ? TYPES[String(Type)] : undefined;
  if (meaning === undefined) return [];
  if (meaning === "complained" || meaning === "deferred")
    return relayEvent(meaning, id, Email, { diagnostic });
  return relayEvent("bounced", id, Email, { diagnostic, outcome: meaning });
}
