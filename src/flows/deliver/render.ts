import { addresseesOf } from "../../core/messages/send-item.ts";
import { isOfBroadcast } from "../../core/audience/broadcasts.ts";
import { isBlank } from "../../core/messages/send-rules.ts";
import { splitAddress } from "../../core/addresses.ts";
import { unseal } from "../../core/crypto/secretbox.ts";
import { type RenderedTemplate, RenderingFailure } from "../../core/templates/render.ts";
import type { ComposedMail } from "../../mail/composing/compose.ts";
import { type DkimSigner, dkimPrivateKey } from "../../mail/auth/dkim.ts";
import { holderOf } from "../../store/projects/holdings.ts";
import { reservedBudget } from "../../store/contents/memory-budget.ts";
import { loadAttachments } from "../../store/messages/attachments.ts";
import { storeRendered } from "../../store/messages/message-content.ts";
import { findOutgoing, type Outgoing } from "../../store/messages/outgoing.ts";
import { installationKey, type SigningKey, signingKeys } from "../../store/messages/sending.ts";
import { templateOfBroadcast } from "../../store/audience/broadcasts.ts";
import { findTemplate, type SavedTemplate } from "../../store/projects/templates.ts";
import { prepareBody } from "../../store/messages/prepare-content.ts";
import { type MailToMake, RenderingError, UnsignedError } from "../mime/make-mail.ts";
import { linksHost, onboardingDomain } from "../../core/own-names.ts";
import { unsubscribeUrl } from "../mime/unsubscribe.ts";
import type { Making } from "../mime/making.ts";

/** Maximum number of opened keys kept. */
const MAX_CACHED_KEYS = 10_000;

/** Maximum number of errors kept. The next rendering finds a dropped one again. */
const MAX_FAILURES = 1000;

/** A message that was made to be sent. */
export interface MadeMail extends ComposedMail {
  /** True if it was submitted whole, so its content is stored as bytes already. */
  isStored: boolean;
}

/**
 * Makes the bytes to send: renders the template, composes, and signs by DKIM with the From domain's keys. They are the
 * same at each attempt, the time of the signature included, because a peer whose 250 got lost must recognize the
 * message (RFC 1047). The caller was admitted for the whole message.
 * @param ord the recipient's number; if null, the copy is only shown, with a placeholder for each recipient's link
 * @throws RenderingError, and UnsignedError unless `ord` is null
 */
export async function renderMessage(
  deps: Making,
  senderId: string,
  id: string,
  ord: number | null,
): Promise<MadeMail> {
  const message = await (ord === null ? loadShown : loadRendered)(deps, senderId, id);
  const made = await deps.renderer.mail(senderId, await copyFor(deps, senderId, id, ord, message));
  return { ...made, isStored: message.whole !== null };
}

async function load(deps: Making, senderId: string, id: string): Promise<Outgoing> {
  const message = await findOutgoing(deps, senderId, id, reservedBudget());
  if (message === null) throw new RenderingError("the message is gone");
  return message;
}

/**
 * Loads the message with its template rendered. The result is stored: if the template changes between two attempts,
 * there must not be two messages under one Message-ID.
 */
async function loadRendered(deps: Making, senderId: string, id: string): Promise<Outgoing> {
  const message = await load(deps, senderId, id);
  if (isRendered(message)) return message;
  // The content of a broadcast never changes, and a copy of it for each recipient would fill the disk.
  return isOfBroadcast(message.templateId)
    ? { ...message, ...(await contentOf(deps, senderId, id, message)) }
    : deps.memory.byMessage(id, () => renderTemplateOf(deps, senderId, id));
}

/** The template of a message, or the content of its broadcast. */
type Source = Pick<SavedTemplate, "senderId" | "subject" | "html" | "text" | "updatedAt">;

function sourceOf({ db }: Making, senderId: string, templateId: string): Promise<Source | null> {
  return isOfBroadcast(templateId)
    ? templateOfBroadcast(db, senderId, templateId)
    : findTemplate(db, senderId, templateId);
}

/**
 * Loads the message as it would be sent now. The rendered template is not stored: a look at a scheduled message must
 * not decide what is sent at its time.
 */
async function loadShown(deps: Making, senderId: string, id: string): Promise<Outgoing> {
  const message = await load(deps, senderId, id);
  return isRendered(message) ? message : { ...message, ...(await contentOf(deps, senderId, id, message)) };
}

function isRendered({ templateId, rendered }: Outgoing): boolean {
  return templateId === null || rendered;
}

async function renderTemplateOf(deps: Making, senderId: string, id: string): Promise<Outgoing> {
  const message = await load(deps, senderId, id);
  // Another recipient's job has rendered it.
  if (isRendered(message)) return message;
  const { subject, html, text } = await contentOf(deps, senderId, id, message);
  const owner = holderOf(senderId, message.testMode);
  const body = html === null && text === null ? null : await prepareBody(deps, owner, { html, text });
  await deps.db.write(storeRendered(senderId, id, { subject, body }, deps.clock.now()));
  // Read again, because another process may have been first.
  return load(deps, senderId, id);
}

/**
 * Renders the message's template. Parts that the send gave inline are kept. An empty part counts as not given: clients
 * in typed languages send one for each field that they leave out.
 */
async function contentOf(
  deps: Making,
  senderId: string,
  id: string,
  message: Outgoing,
): Promise<Pick<Outgoing, "subject" | "html" | "text">> {
  const template = message.templateId && (await sourceOf(deps, senderId, message.templateId));
  if (!template) throw new RenderingError("the template is gone");
  const { unsubscribeKey } = deps;
  const publicUrl = linkUrlOf(deps, message);
  const link = message.unsubscribeLink
    ? { unsubscribeUrl: unsubscribeUrl({ publicUrl, unsubscribeKey }, id, null) }
    : {};
  const rendered = await renderOnce(deps, id, template, { ...message.data, ...link });
  const html = message.html || rendered.html;
  const text = message.text || rendered.text;
  if (isBlank(html) && isBlank(text))
    throw new RenderingError("the template renders to neither html nor text");
  return { subject: message.subject || rendered.subject, html, text };
}

/** Renders a template, unless the same version has failed for this message before. */
async function renderOnce(
  { renderer, memory: { failures } }: Making,
  id: string,
  { senderId, subject, html, text, updatedAt }: Source,
  data: Record<string, unknown>,
): Promise<RenderedTemplate> {
  const key = `${id} ${updatedAt}`;
  const known = failures.get(key);
  if (known !== undefined) throw known;
  try {
    return await renderer.template(senderId, { subject, html, text }, data);
  } catch (error) {
    if (!(error instanceof RenderingFailure)) throw error;
    const failure = new RenderingError(`${error.part}: ${error.message}`);
    if (failures.size >= MAX_FAILURES) failures.clear();
    failures.set(key, failure);
    throw failure;
  }
}

/** Loads one recipient's copy, with its attachments and the keys of its From domain. */
async function copyFor(
  deps: Making,
  senderId: string,
  id: string,
  ord: number | null,
  message: Outgoing,
): Promise<MailToMake> {
  const { templateId, data, rendered, hasAttachments, keys: active, testMode, host, bcc, ...mail } = message;
  const attachments =
    hasAttachments && mail.whole === null ? await loadAttachments(deps, senderId, id, reservedBudget()) : [];
  if (attachments === null) throw new RenderingError("an attachment is gone");
  const domain = message.domain ?? splitAddress(message.from.email)?.domain ?? "";
  // Mail in test mode never leaves. It may be from any address, or have no From, which cannot be signed.
  const keys = testMode ? [] : await keysOf(deps, senderId, domain, active);
  // If the From domain was deleted, its messages are not sent, and never unsigned. Messages already sent are still
  // shown.
  if (keys.length === 0 && ord !== null && !testMode)
    throw new UnsignedError(`the domain ${domain} has no key`);
  const linkUrl = linkUrlOf(deps, message);
  const signing = keys.length === 0 ? null : { domain, keys: [...keys, ...(await serviceKeys(deps))] };
  return { ...mail, id, ord, hasOwnId: hasOwnId(message, ord), attachments, linkUrl, signing };
}

/**
 * Maximum number of hidden recipients whose copies share a Message-ID. Providers count equal ones, and take a letter to more people than
 * its header names for bulk mail.
 */
export const MAX_SHARED_BCC = 10;

/** Returns whether a copy has its own Message-ID: that of a hidden recipient, if there are many. Bcc recipients have the last numbers. */
function hasOwnId({ to, cc, bcc }: Outgoing, ord: number | null): boolean {
  return ord !== null && bcc.length > MAX_SHARED_BCC && ord >= addresseesOf({ to, cc }).length;
}

/** Returns the key of the second signature, by which a provider knows all mail of the service. */
async function serviceKeys(deps: Making): Promise<DkimSigner[]> {
  const key = deps.serviceSignature ? await installationKey(deps.db) : null;
  return key === null ? [] : [{ ...openKey(deps, key), domain: deps.serviceDomain }];
}

/**
 * Returns the address of a message's links: the host of its From domain, if that was served when the message was posted and
 * its certificate is valid, else PUBLIC_URL. An attempt must not have other links than the one before.
 */
function linkUrlOf({ publicUrl, hostsDomains, clock }: Making, { host, date }: Outgoing): string {
  const isServed = host !== null && host.servedFrom <= date && clock.now() < host.notAfter;
  return hostsDomains && isServed ? `https://${linksHost(host.domain)}` : publicUrl;
}

/**
 * Returns the keys to sign with. `active` are the keys of the project's From domain as just read.
 */
async function keysOf(
  deps: Making,
  senderId: string,
  domain: string,
  active: Outgoing["keys"],
): Promise<readonly DkimSigner[]> {
  if (domain === onboardingDomain(deps.serviceDomain)) {
    const key = await installationKey(deps.db);
    return key === null ? [] : [openKey(deps, key)];
  }
  const known = active.flatMap((key) => deps.memory.keys.get(cacheName(key)) ?? []);
  if (known.length === active.length) return known;
  return (await signingKeys(deps.db, senderId, domain)).map((key) => openKey(deps, key));
}

/**
 * Returns a key's name in the cache. A token alone names two keys, because each second rotation uses the same label.
 */
function cacheName({ token, createdAt }: Pick<SigningKey, "token" | "createdAt">): string {
  return `${token} ${createdAt}`;
}

function openKey(deps: Making, key: SigningKey): DkimSigner {
  const name = cacheName(key);
  const known = deps.memory.keys.get(name);
  if (known !== undefined) return known;
  if (deps.memory.keys.size >= MAX_CACHED_KEYS) deps.memory.keys.clear();
  const opened = {
    selector: key.selector,
    privateKey: dkimPrivateKey(unseal(deps.boxKey, key.sealedPrivateKey)),
  };
  deps.memory.keys.set(name, opened);
  return opened;
}
