import type { KeyObject } from "node:crypto";
import { splitAddress } from "../../core/addresses.ts";
import { unseal } from "../../core/secretbox.ts";
import {
  type RenderedTemplate,
  RenderingFailure,
  renderTemplate,
  type TemplateSource,
} from "../../core/templates.ts";
import { type ComposedMail, compose } from "../../mail/composing/compose.ts";
import { dkimPrivateKey, signDkim } from "../../mail/dkim.ts";
import type { ContentDeps } from "../../store/contents/content-read.ts";
import { loadAttachments } from "../../store/attachments.ts";
import { keepRendered } from "../../store/contents/message-content.ts";
import { findOutgoing, type Outgoing } from "../../store/outgoing.ts";
import { installationKey, type SigningKey, signingKey } from "../../store/sending.ts";
import { findTemplate } from "../../store/templates.ts";
import { type KeepDeps, keepBody } from "../contents/keep.ts";
import { onboardingDomain } from "./policy.ts";
import { trackedHtml, type TrackingLinks } from "./tracking-links.ts";
import {
  type UnsubscribeLinks,
  unsubscribeHeaders,
  unsubscribeUrl,
  withUnsubscribeUrl,
} from "./unsubscribe.ts";

export interface RenderDeps extends UnsubscribeLinks, TrackingLinks, ContentDeps, KeepDeps {
  serviceDomain: string;
  /** Opens the private keys in the database. */
  boxKey: Uint8Array;
  keys: KeyCache;
}

/** Opened private keys, by `cacheName`: reading a PEM costs as much as signing with it. */
export type KeyCache = Map<string, KeyObject>;

/** Opened keys kept at most: a memory bound, not a correctness one. */
const MAX_CACHED_KEYS = 10_000;

/** A message that cannot be composed, or no longer: the fault of its content, not of a peer. */
export class RenderingError extends Error {}

/**
 * The bytes to put on the wire: the template rendered, composed, and DKIM-signed by the From domain's key. They are the
 * same at each try, the time of the signature included: a peer whose 250 got lost must know the mail again (RFC 1047).
 * @param ord the recipient it is for; null: nobody's, with a link in the place of each recipient's own
 * @throws RenderingError
 */
export async function renderMessage(
  deps: RenderDeps,
  senderId: string,
  id: string,
  ord: number | null,
): Promise<ComposedMail> {
  const message = await loadRendered(deps, senderId, id);
  const composed = await composeMessage(deps, { ...message, id, senderId }, ord);
  const domain = splitAddress(message.from.email)?.domain ?? "";
  const key = await keyOf(deps, senderId, domain, message.key);
  // Its domain was deleted since: mail in its name no longer goes out, least of all unsigned.
  if (key === null) throw new RenderingError(`the domain ${domain} has no key`);
  const { raw } = composed;
  return { ...composed, raw: await signDkim({ ...key, raw, domain, signedAt: message.date }) };
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
  if (message.templateId === null || message.rendered) return message;
  const template = await findTemplate(deps.db, senderId, message.templateId);
  if (template === null) throw new RenderingError("the template is gone");
  const link = message.unsubscribeLink ? { unsubscribeUrl: unsubscribeUrl(deps, id, null) } : {};
  const rendered = renderSource(template, { ...message.data, ...link });
  // What the send gave inline stays as it is.
  const html = message.html ?? rendered.html;
  const text = message.text ?? rendered.text;
  const subject = message.subject === "" ? rendered.subject : message.subject;
  const body = html === null && text === null ? null : await keepBody(deps, senderId, { html, text });
  await deps.db.write(keepRendered(senderId, id, { subject, body }, deps.clock.now()));
  // Read again: another recipient's worker may have been first.
  return load(deps, senderId, id);
}

function renderSource(source: TemplateSource, data: Record<string, unknown>): RenderedTemplate {
  try {
    return renderTemplate(source, data);
  } catch (error) {
    if (error instanceof RenderingFailure) throw new RenderingError(`${error.part}: ${error.message}`);
    throw error;
  }
}

async function composeMessage(
  deps: RenderDeps,
  message: Outgoing & { id: string; senderId: string },
  ord: number | null,
): Promise<ComposedMail> {
  const attachments = message.hasAttachments ? await loadAttachments(deps, message.senderId, message.id) : [];
  if (attachments === null) throw new RenderingError("an attachment is gone");
  const own = (part: string | null): string | null =>
    part === null || !message.unsubscribeLink ? part : withUnsubscribeUrl(deps, message.id, ord, part);
  // Nobody's copy has nobody's marks: a look at it must not be taken for a recipient's.
  const marked = (html: string | null): string | null =>
    html === null || ord === null ? html : trackedHtml(deps, message, ord, html);
  try {
    return compose({
      from: message.from,
      to: message.to,
      cc: message.cc,
      replyTo: message.replyTo,
      subject: message.subject,
      text: own(message.text),
      html: marked(own(message.html)),
      headers: message.headers,
      extraHeaders: message.unsubscribeLink ? unsubscribeHeaders(deps, message.id, ord) : [],
      attachments,
      messageId: message.rfcMessageId ?? `<${message.id}@${deps.serviceDomain}>`,
      date: message.date,
    });
  } catch (error) {
    throw new RenderingError(error instanceof Error ? error.message : String(error));
  }
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
  const privateKey = deps.keys.get(cacheName(active));
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
  const known = deps.keys.get(name);
  if (known !== undefined) return { selector, privateKey: known };
  if (deps.keys.size >= MAX_CACHED_KEYS) deps.keys.clear();
  const privateKey = dkimPrivateKey(unseal(deps.boxKey, key.sealedPrivateKey));
  deps.keys.set(name, privateKey);
  return { selector, privateKey };
}
