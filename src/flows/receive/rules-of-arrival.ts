import { checkRules, type ReadyRules } from "../../core/rules/match.ts";
import type { SenderFacts } from "../../core/messages/sender.ts";
import type { RuleMail } from "../../core/rules/rule.ts";
import { NO_RULING, type Ruling, rulingOf } from "../../core/rules/ruling.ts";
import { isSpam } from "../../core/messages/spam.ts";
import { countFields } from "../../mail/reading/raw-headers.ts";
import type { Db } from "../../store/engine/client.ts";
import { enabledRules } from "../../store/rules/rules.ts";
import { usedLists } from "../../store/threads/listed-senders.ts";
import type { InboundMail, InboundTargetInbox } from "./inbound-message.ts";

/** Reads the rules of the projects whose inboxes a message goes to. Role mailboxes have none. */
export async function rulesOf(
  db: Db,
  targets: readonly InboundTargetInbox[],
): Promise<ReadonlyMap<string, ReadyRules>> {
  const projects = new Set(targets.flatMap(({ inbox }) => (inbox.id === null ? [] : [inbox.senderId])));
  const read = [...projects].map(async (id) => [id, await enabledRules(db, id)] as const);
  return new Map((await Promise.all(read)).filter(([, { rules }]) => rules.length > 0));
}

/** Returns what inboxes and their rules need of a message, to refuse it and keep its header; undefined if nothing. */
export async function needsOf(
  db: Db,
  targets: readonly InboundTargetInbox[],
  rules: ReadonlyMap<string, ReadyRules>,
): Promise<{ refuses: boolean; headers: string[] } | undefined> {
  const choosing = targets.map(async ({ inbox }) =>
    inbox.id === null ? false : inbox.accept !== "anyone" || (await usedLists(db, inbox.senderId)).block,
  );
  const chooses = (await Promise.all(choosing)).some(Boolean);
  if (rules.size === 0 && !chooses) return undefined;
  const all = [...rules.values()];
  return {
    refuses: chooses || all.some(({ refuses }) => refuses),
    headers: all.flatMap(({ headers }) => headers),
  };
}

/** Returns what the rules of an inbox decide about a message that arrives there. */
export function rulingFor(
  mail: InboundMail,
  { inbox, addresses, sender }: InboundTargetInbox & { sender: SenderFacts },
): Ruling {
  const ready = inbox.id === null ? undefined : mail.rules.get(inbox.senderId);
  if (ready === undefined) return NO_RULING;
  const asked = arrivingRuleMail(mail, { inbox, addresses }, sender);
  return rulingOf(checkRules(ready, inbox.id, asked), asked);
}

/** Returns what rules ask of a message that arrives. */
function arrivingRuleMail(
  { inspection, envelope, raw, spam }: InboundMail,
  { inbox, addresses }: InboundTargetInbox,
  { authenticated, trust }: SenderFacts,
): RuleMail {
  const { mail, ruleHeaders } = inspection;
  return {
    from: mail.from?.email ?? envelope.mailFrom,
    to: [...addresses, ...[...mail.to, ...mail.cc].map(({ email }) => email)],
    subject: mail.subject,
    headers: ruleHeaders,
    hasAttachment: mail.attachments.length > 0,
    size: raw.length,
    authenticated,
    trust,
    spamScore: spam?.score ?? null,
    isSpam: spam !== null && isSpam(spam),
    mailFrom: envelope.mailFrom,
    inboxAddress: inbox.address,
    receivedFields: countFields(raw, "received"),
  };
}
