import { isSpam } from "../../core/messages/spam.ts";
import type { RuleMail } from "../../core/rules/rule.ts";
import type { MessageRecord } from "../read/record.ts";

/** Returns what rules ask of a message that is stored. @param receivedFields the number of those that it came with */
export function storedRuleMail(
  { message, content, attachments }: MessageRecord,
  { inboxAddress, receivedFields }: Pick<RuleMail, "inboxAddress" | "receivedFields">,
): RuleMail {
  const { auth, arrival, envelope } = content;
  const recipients = Array.isArray(envelope?.rcptTo) ? envelope.rcptTo.map(String) : [];
  const dmarc = auth?.dmarc as { result?: string } | undefined;
  return {
    from: message.from.email,
    to: [...recipients, ...[...message.to, ...message.cc].map(({ email }) => email)],
    subject: message.subject,
    headers: lowerCased(content.headers),
    hasAttachment: attachments.length > 0,
    size: message.size - Buffer.byteLength(content.trace ?? ""),
    authenticated: arrival?.sender?.authenticated ?? dmarc?.result === "pass",
    trust: message.trust,
    spamScore: arrival?.spam?.score ?? null,
    isSpam: arrival?.spam != null && isSpam(arrival.spam),
    mailFrom: String(envelope?.mailFrom ?? ""),
    inboxAddress,
    receivedFields,
  };
}

function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
