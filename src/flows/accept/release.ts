import { findWildcardAbove } from "../../store/domains/wildcards.ts";
import { AppError, existing } from "../../core/errors.ts";
import type { Mailbox } from "../../core/addresses.ts";
import { newId } from "../../core/ids.ts";
import type { ReadItem } from "../../core/messages/send-item.ts";
import { largeReadBudget } from "../../store/contents/large-reads.ts";
import { sharedAttachments } from "../../store/messages/attachments.ts";
import { getContent, sharedContents } from "../../store/messages/message-content.ts";
import { getMessage, type Message, type MessageContent } from "../../store/messages/messages.ts";
import { prepareBody } from "../../store/messages/prepare-content.ts";
import { listRecipients } from "../../store/messages/recipients.ts";
import type { Project } from "../../store/projects/projects.ts";
import { DEFAULT_ROUTE, getRoute, planOf } from "../../store/projects/routes.ts";
import { findDomain } from "../../store/domains/domains.ts";
import { readWhole } from "../mime/read-whole.ts";
import { LINK_VARIABLE, UNSUBSCRIBE_PATH } from "../mime/unsubscribe.ts";
import { type PreparedSend, prepareSend, type SendingKey, type WayOut } from "./accept.ts";
import type { KeptContent, SendContent } from "./content.ts";
import { fromOf } from "./new-message.ts";
import type { Sending } from "./sending.ts";

/** What a release asks. */
export interface Release {
  /** The recipients; null: those of the captured message. */
  to: Mailbox[] | null;
  /** The route to take; null: the first of the From domain or the project, else the default one. */
  routeId: string | null;
  /** What the default route is. `null`: no mail leaves by it. */
  byDefault: WayOut["kind"] | null;
}

/** Fields of a message that was submitted whole that its item has, too. Its bytes have the rest. */
const PARENTS = /^(?:in-reply-to|references)$/i;

/**
 * Prepares a captured message as a new one that leaves the machine. It shares the stored contents of the captured one, which stays.
 * @throws AppError 404 for no such message, 409 `invalid_state` unless it was captured and there is a way out, and what
 *   refuses a send
 */
export async function prepareRelease(
  deps: Sending,
  project: Project,
  by: SendingKey,
  id: string,
  release: Release,
): Promise<PreparedSend> {
  const { db, memory } = deps;
  const senderId = project.id;
  const message = existing("message", await getMessage(db, senderId, id));
  const recipients = await listRecipients(db, senderId, id);
  if (message.direction === "inbound" || !recipients.some(({ mx }) => mx === "capture"))
    throw refused("This message was not captured, so it cannot be released.");
  const contents = existing("message", await sharedContents(db, senderId, id));
  const budget = largeReadBudget(memory.largeReads, senderId);
  const content = existing("message", await getContent({ ...deps, readWhole }, senderId, id, budget));
  if (content.html === null && content.text === null && contents.whole === null)
    throw refused("The content of this message has passed its retention time and is gone.");
  const texts = { html: unlinked(content.html, id), text: unlinked(content.text, id) };
  const item = { ...itemOf(message, content, contents.whole !== null), ...recipientsOf(message, release) };
  const released = await wayOut(deps, project, fromOf(item).domain, release);
  const sent: SendContent = {
    mayWriteAhead: () => false,
    texts: async () => texts,
    async keep(keeping, owner, now): Promise<KeptContent> {
      const { whole, body } = contents;
      const files = await sharedAttachments(db, senderId, id);
      return {
        body: whole === null ? await prepareBody(keeping, owner, texts) : body,
        attachments: files.map((file) => ({ ...file, id: newId("att", now) })),
        size: message.size,
        ...(whole === null ? {} : { whole: { ...whole, rfcMessageId: message.rfcMessageId } }),
      };
    },
  };
  return prepareSend(deps, project, by, { item, scheduledAt: null }, { content: sent, released });
}

/** Returns rendered content with the variable of the recipient's link in place of the placeholder, which has the captured message's id. */
function unlinked(part: string | null, id: string): string | null {
  return (
    part?.replaceAll(new RegExp(`https?://[^\\s"'<>()]*${UNSUBSCRIBE_PATH}${id}`, "g"), LINK_VARIABLE) ?? null
  );
}

function itemOf(message: Message, { headers, data }: MessageContent, isWhole: boolean): ReadItem {
  const { from, to, replyTo, subject, tags, stream, unsubscribeLink, topicId, trackOpens, trackClicks } =
    message;
  const kept = Object.entries(headers).filter(([name]) => !isWhole || PARENTS.test(name));
  return {
    from,
    to,
    replyTo,
    subject,
    tags,
    stream,
    unsubscribeLink,
    headers: Object.fromEntries(kept),
    tracking: { opens: trackOpens, clicks: trackClicks },
    ...(topicId === null ? {} : { topicId }),
    ...(data === null ? {} : { data }),
  };
}

function recipientsOf({ to, cc, bcc }: Message, release: Release): Pick<ReadItem, "to" | "cc" | "bcc"> {
  return release.to === null ? { to, cc, bcc } : { to: release.to };
}

/** Returns the way that a released message takes. Throws 409 with what to configure if there is none. */
async function wayOut(
  { db, serviceDomain }: Sending,
  { id: senderId, accountId }: Project,
  fromDomain: string,
  { routeId, byDefault }: Release,
): Promise<WayOut> {
  const domain =
    (await findDomain(db, senderId, fromDomain)) ?? (await findWildcardAbove(db, senderId, fromDomain));
  const named = routeId === null ? null : await getRoute(db, accountId, routeId);
  const planned = routeId === null ? await planOf(db, senderId, domain?.id ?? null) : [];
  const own = named ?? planned.find(({ id }) => id !== DEFAULT_ROUTE) ?? null;
  const kind = own?.kind ?? byDefault;
  if (kind === null)
    throw refused(
      "No mail leaves this machine in capture mode, and no way out for released mail is configured. Set SMTP_RELAY_URL next to DELIVERY=capture, or create a route with POST /v1/routes and give its id as `routeId`, here or in the project's `routeIds`.",
    );
  if (kind === "mx" && /(?:^|\.)localhost$/.test(serviceDomain))
    throw refused(
      `No mail server takes mail whose return path is below ${serviceDomain}. Set SERVICE_DOMAIN to a domain of yours, or release through a route of kind \`relay\`.`,
    );
  return { routeId: own?.id ?? DEFAULT_ROUTE, kind };
}

function refused(message: string): AppError {
  return new AppError("conflict", message, { code: "invalid_state" });
}
