import type { KeyObject } from "node:crypto";
import { splitAddress } from "../../core/addresses.ts";
import { type OneByOne, oneByOne } from "../../core/one-by-one.ts";
import { unseal } from "../../core/secretbox.ts";
import { type RenderedTemplate, RenderingFailure } from "../../core/templates.ts";
import type { ComposedMail } from "../../mail/composing/compose.ts";
import { dkimPrivateKey } from "../../mail/dkim.ts";
import type { ContentDeps } from "../../store/contents/content-read.ts";
import { loadAttachments } from "../../store/attachments.ts";
import { keepRendered } from "../../store/contents/message-content.ts";
import { findOutgoing, type Outgoing } from "../../store/outgoing.ts";
import { installationKey, type SigningKey, signingKey } from "../../store/sending.ts";
import { findTemplate, type SavedTemplate } from "../../store/templates.ts";
import { type KeepDeps, keepBody } from "../contents/keep.ts";
import { type LargeMails, largeMails } from "../read/large-mails.ts";
import type { Renderer } from "../renderings.ts";
import { type MailLinks, type MailToMake, RenderingError, UnsignedError } from "./make-mail.ts";
import { onboardingDomain } from "../own-names.ts";
import { unsubscribeUrl } from "./unsubscribe.ts";

export interface RenderDeps extends MailLinks, ContentDeps, KeepDeps {
  renderer: Renderer;
  /** Opens the private keys in the database. */
  boxKey: Uint8Array;
  memory: RenderMemory;
}

/** What a process remembers of mails that it makes: what makes the next one cheaper than the first, and whose turn it is. */
export interface RenderMemory {
  keys: KeyCache;
  /** By message: a template is rendered for the first of its recipients. */
  inTurn: OneByOne;
  /**
   * Why templates could not be rendered, by message and state of the template: each of fifty recipients would take up to
   * seconds to find the same again.
   */
  failures: Map<string, RenderingError>;
  /** Of mails that are shown; those that go out have room of their own (`dispatch/room`). */
  largeMails: LargeMails;
}

/** An empty one. */
export function renderMemory(): RenderMemory {
  return { keys: new Map(), inTurn: oneByOne(), failures: new Map(), largeMails: largeMails() };
}

/** Opened private keys, by `cacheName`: reading a PEM costs as much as signing with it. */
export type KeyCache = Map<string, KeyObject>;

/** Opened keys kept at most: a memory bound, not a correctness one. */
const MAX_CACHED_KEYS = 10_000;

/** Failures remembered at most; one forgotten is found again. */
const MAX_FAILURES = 1000;

/**
 * The bytes to put on the wire: the template rendered, composed, and DKIM-signed by the From domain's key. They are the
 * same at each try, the time of the signature included: a peer whose 250 got lost must know the mail again (RFC 1047).
 * @param ord the recipient it is for; null: nobody's, with a link in the place of each recipient's own
 * @throws RenderingError, and UnsignedError where it is somebody's
 */
export async function renderMessage(
  deps: RenderDeps,
  senderId: string,
  id: string,
  ord: number | null,
): Promise<ComposedMail> {
  const message = await (ord === null ? loadShown : loadRendered)(deps, senderId, id);
  return deps.renderer.mail(senderId, await copyFor(deps, senderId, id, ord, message));
}

async function load(deps: RenderDeps, senderId: string, id: string): Promise<Outgoing> {
  const message = await findOutgoing(deps, senderId, id);
  if (message === null) throw new RenderingError("the message is gone");
  return message;
}

/**
 * The message with its template rendered. What it became is kept: a template changed between two tries must not make
 * two messages under one Message-ID.
 */
async function loadRendered(deps: RenderDeps, senderId: string, id: string): Promise<Outgoing> {
  const message = await load(deps, senderId, id);
  return isRendered(message) ? message : deps.memory.inTurn(id, () => renderTemplateOf(deps, senderId, id));
}

/**
 * The message as it would go out now. What its template became is not kept: a look at a scheduled message must not
 * decide what is sent when its time comes.
 */
async function loadShown(deps: RenderDeps, senderId: string, id: string): Promise<Outgoing> {
  const message = await load(deps, senderId, id);
  return isRendered(message) ? message : { ...message, ...(await contentOf(deps, senderId, id, message)) };
}

function isRendered({ templateId, rendered }: Outgoing): boolean {
  return templateId === null || rendered;
}

async function renderTemplateOf(deps: RenderDeps, senderId: string, id: string): Promise<Outgoing> {
  const message = await load(deps, senderId, id);
  // By another recipient's worker that had its turn before.
  if (isRendered(message)) return message;
  const { subject, html, text } = await contentOf(deps, senderId, id, message);
  const body = html === null && text === null ? null : await keepBody(deps, senderId, { html, text });
  await deps.db.write(keepRendered(senderId, id, { subject, body }, deps.clock.now()));
  // Read again: another process may have been first.
  return load(deps, senderId, id);
}

/**
 * What the message's template makes of it. What the send gave inline stays as it is. An empty part is none given: clients in
 * typed languages put one for each field they leave out, and it would take the template's away.
 */
async function contentOf(
  deps: RenderDeps,
  senderId: string,
  id: string,
  message: Outgoing,
): Promise<Pick<Outgoing, "subject" | "html" | "text">> {
  const template = message.templateId && (await findTemplate(deps.db, senderId, message.templateId));
  if (!template) throw new RenderingError("the template is gone");
  const link = message.unsubscribeLink ? { unsubscribeUrl: unsubscribeUrl(deps, id, null) } : {};
  const rendered = await renderOnce(deps, id, template, { ...message.data, ...link });
  return {
    subject: message.subject || rendered.subject,
    html: message.html || rendered.html,
    text: message.text || rendered.text,
  };
}

/** Renders the message's template, unless it has failed by the same one before. */
async function renderOnce(
  { renderer, memory: { failures } }: RenderDeps,
  id: string,
  { senderId, subject, html, text, updatedAt }: SavedTemplate,
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

/** One recipient's copy, with its attachments and the key of its From domain. */
async function copyFor(
  deps: RenderDeps,
  senderId: string,
  id: string,
  ord: number | null,
  message: Outgoing,
): Promise<MailToMake> {
  const { templateId, data, rendered, hasAttachments, key, ...mail } = message;
  const attachments = hasAttachments ? await loadAttachments(deps, senderId, id) : [];
  if (attachments === null) throw new RenderingError("an attachment is gone");
  const domain = splitAddress(message.from.email)?.domain ?? "";
  const open = await keyOf(deps, senderId, domain, key);
  // Its domain was deleted since: mail in its name no longer goes out, least of all unsigned. What has gone is still shown.
  if (open === null && ord !== null) throw new UnsignedError(`the domain ${domain} has no key`);
  return { ...mail, id, ord, attachments, signing: open && { ...open, domain } };
}

/** A key opened, and the selector it is published under. */
interface OpenKey {
  selector: string;
  privateKey: KeyObject;
}

/** The key to sign with; `active` is that of the project's From domain as just read. Null where there is none. */
async function keyOf(
  deps: RenderDeps,
  senderId: string,
  domain: string,
  active: Outgoing["key"],
): Promise<OpenKey | null> {
  if (domain === onboardingDomain(deps.serviceDomain)) return openKey(deps, await installationKey(deps.db));
  if (active === null) return null;
  const privateKey = deps.memory.keys.get(cacheName(active));
  return privateKey === undefined
    ? openKey(deps, await signingKey(deps.db, senderId, domain))
    : { selector: active.selector, privateKey };
}

/** A token alone names two keys, one after the other: each second rotation uses the label of the key before the last. */
function cacheName({ token, createdAt }: Pick<SigningKey, "token" | "createdAt">): string {
  return `${token} ${createdAt}`;
}

function openKey(deps: RenderDeps, key: SigningKey | null): OpenKey | null {
  if (key === null) return null;
  const { selector } = key;
  const name = cacheName(key);
  const known = deps.memory.keys.get(name);
  if (known !== undefined) return { selector, privateKey: known };
  if (deps.memory.keys.size >= MAX_CACHED_KEYS) deps.memory.keys.clear();
  const privateKey = dkimPrivateKey(unseal(deps.boxKey, key.sealedPrivateKey));
  deps.memory.keys.set(name, privateKey);
  return { selector, privateKey };
}
