import type { Explanation, Message, Recipient } from "../api/types.ts";
import { duration, localTime } from "./time.ts";
import { statusWords } from "./status.ts";

/** Returns the details that an event keeps under the name of its type. */
export function detailsOf(event: { type: string; data: Record<string, unknown> }): Record<string, unknown> {
  const details = event.data[event.type];
  return typeof details === "object" && details !== null ? (details as Record<string, unknown>) : {};
}

/** Returns true if a recipient's message, or an event, was delivered only to this machine. */
export function isCaptured({ mx }: { mx?: unknown }): boolean {
  return mx === "capture";
}

/** Milliseconds from the acceptance or the scheduled time to the recipient's last outcome; null if unknown. */
function timeTaken(message: Message, { lastEventAt, email }: Recipient): number | null {
  const outcome = message.events.find(
    (event) => event.email === email && (event.type === "delivery" || event.type === "sent"),
  );
  const end = outcome?.createdAt ?? lastEventAt;
  if (end === null) return null;
  const taken = Date.parse(end) - Date.parse(message.scheduledAt ?? message.createdAt);
  return taken < 0 ? null : taken;
}

/** Returns one sentence about one recipient: the answer that a person looks for first. */
export function recipientAnswer(message: Message, recipient: Recipient): string {
  const { status, mx, tls, reason } = recipient;
  const taken = timeTaken(message, recipient);
  const when = taken === null ? "" : ` in ${duration(taken)}`;
  if (status === "delivered" && isCaptured(recipient))
    return `Kept on this machine${when}. No mail leaves it in capture mode.`;
  if (status === "delivered" && mx === "simulator") return `Delivered by the simulator${when}.`;
  if (status === "delivered") return `Delivered to ${mx ?? "the recipient's server"}${when}${overTls(tls)}.`;
  if (status === "sent") return `Handed to ${mx ?? "the smarthost"}${when}${overTls(tls)}.`;
  if (status === "accepted" && reason === null && message.scheduledAt !== null)
    return `It will be sent on ${localTime(Date.parse(message.scheduledAt))}.`;
  const what = REASONS[reason ?? ""]?.what ?? statusWords(status).means;
  return status === "bounced" && mx !== "simulator" ? `${what} The bounce suppressed the address.` : what;
}

function overTls(tls: string | null): string {
  return tls === null ? " without TLS" : ` over ${tls.replace(/^TLSv/, "TLS ")}`;
}

interface Reason {
  what: string;
  next: string;
}

/** Plain words for the reasons of a failure, for services that do not explain it themselves. */
const REASONS: Readonly<Record<string, Reason>> = {
  suppressed: {
    what: "It was not sent, because the address is suppressed.",
    next: "Lift the suppression if the address works again.",
  },
  unsubscribed: {
    what: "It was not sent, because the contact has unsubscribed.",
    next: "Send it only if the contact subscribes again.",
  },
  canceled: { what: "It was canceled before its time.", next: "Send it again if it is still wanted." },
  capture_only: {
    what: "It was captured, from an address that this project may not send from, so it never leaves this machine.",
    next: "Verify its domain, and send it again.",
  },
  key_revoked: {
    what: "Its key was revoked before its time.",
    next: "Approve it if it is still wanted, else cancel it.",
  },
  awaiting_approval: { what: "It waits for approval.", next: "Approve or reject it with another key." },
  approval_expired: { what: "It was not approved in time.", next: "Send it again if it is still wanted." },
  recipient: {
    what: "The recipient's server does not know this address. It will not be tried again.",
    next: "Check the address for typing errors, or ask the recipient in another way.",
  },
  "mailbox-full": {
    what: "The recipient's mailbox is full.",
    next: "Send it again in a few days, when the recipient has made room.",
  },
  policy: {
    what: "The recipient's server refuses this mail by its rules.",
    next: "Read its reply below. It often names a page that explains the rule.",
  },
  reputation: {
    what: "The recipient's server does not trust this sender.",
    next: "Check the sending address on blocklists.",
  },
  authentication: {
    what: "The recipient's server wants proof of the sender, and got none.",
    next: "Check that SPF, DKIM, DMARC and reverse DNS pass.",
  },
  rate: {
    what: "The recipient's server limits how fast it accepts mail.",
    next: "There is nothing to do. The message leaves when the server accepts more.",
  },
  greylist: {
    what: "The recipient's server defers mail from senders that it does not know yet.",
    next: "There is nothing to do. It is tried again in a few minutes.",
  },
  content: {
    what: "The recipient's server refuses the content of the message.",
    next: "Look for links or attachments that filters dislike.",
  },
  infrastructure: {
    what: "The recipient's mail system could not take the message.",
    next: "Send it again later. If the problem persists, tell the recipient's operator.",
  },
  protocol: {
    what: "The two mail servers did not agree on how to hand it over.",
    next: "Read the conversation in the tab SMTP.",
  },
  retries_exhausted: {
    what: "Every attempt was deferred until retries expired.",
    next: "Look at the last reply, and send it again when the cause is gone.",
  },
  dmarc: {
    what: "The sender's domain asks to refuse mail that it did not sign, and this one was not.",
    next: "Tell the sender that their DMARC check fails.",
  },
};

/** Returns what happened to the recipients that did not get the message, for services that do not explain it themselves. */
export function localExplanation(message: Message): Explanation | null {
  const troubled = message.recipients.filter(({ status }) => TROUBLED.has(status));
  const [first] = troubled;
  if (first === undefined) return null;
  return {
    summary: recipientAnswer(message, first),
    recipients: troubled.map((recipient) => ({
      email: recipient.email,
      status: recipient.status,
      what: recipientAnswer(message, recipient),
      why: "",
      who: "nobody",
      next:
        recipient.status === "delivery_delayed"
          ? "There is nothing to do. It is tried again automatically."
          : (REASONS[recipient.reason ?? ""]?.next ?? ""),
    })),
  };
}

/** Statuses that a person wants explained. */
export const TROUBLED: ReadonlySet<string> = new Set([
  "delivery_delayed",
  "bounced",
  "complained",
  "rejected",
  "rendering_failure",
  "failed",
]);

/** Why a received message was refused, by the reason in its event. */
const REFUSALS: Readonly<Record<string, string>> = {
  dmarc: REASONS.dmarc?.what ?? "",
  rule: "A rule refused it.",
  dropped: "A rule dropped it.",
  sender_blocked: "Its sender is on a block list.",
  sender_unauthenticated: "The inbox takes only mail whose author is proven.",
  sender_not_allowed: "The inbox takes only mail of senders on its allow list.",
};

function refusalAnswer({ events }: Message): string {
  const data = events.find(({ type }) => type === "inbound_rejected")?.data as
    | { inbound_rejected?: { reason?: string } }
    | undefined;
  return REFUSALS[data?.inbound_rejected?.reason ?? "dmarc"] ?? "";
}

/** Returns one sentence about the whole message. */
export function messageAnswer(message: Message): string {
  const { recipients, direction, status } = message;
  if (direction === "inbound") {
    if (status === "inbound_rejected") return refusalAnswer(message);
    return message.testMode === true ? "Simulated. It was handled like real mail." : receivedFrom(message);
  }
  const [only] = recipients;
  if (recipients.length === 1 && only !== undefined) return recipientAnswer(message, only);
  const counts = new Map<string, number>();
  for (const recipient of recipients) {
    const { word } = statusWords(recipient.status, direction, isCaptured(recipient));
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const parts = [...counts].map(([word, count]) => `${count} ${word.toLowerCase()}`);
  return `${recipients.length} recipients: ${parts.join(", ")}.`;
}

function receivedFrom({ envelope }: Message): string {
  const { helo, ip, tls } = envelope ?? {};
  if (ip === undefined) return "Received.";
  return `Received from ${helo ?? "a server"} [${ip}]${overTls(tls ?? null)}.`;
}
