import type { KeyObject } from "node:crypto";
import { splitAddress } from "../../core/addresses.ts";
import { unseal } from "../../core/secretbox.ts";
import { type ComposedMail, compose } from "../../mail/compose.ts";
import { dkimPrivateKey, signDkim } from "../../mail/dkim.ts";
import type { Db } from "../../store/client.ts";
import { loadAttachments } from "../../store/attachments.ts";
import { getContent, getMessage, type Message } from "../../store/messages.ts";
import { installationKey, type SigningKey, signingKey } from "../../store/sending.ts";
import { onboardingDomain } from "./policy.ts";

export interface RenderDeps {
  db: Db;
  serviceDomain: string;
  /** Opens the private keys in the database. */
  boxKey: Uint8Array;
  keys: KeyCache;
}

/** Opened private keys, by the token of their record: reading a PEM costs as much as signing with it. */
export type KeyCache = Map<string, KeyObject>;

/** Opened keys kept at most: a memory bound, not a correctness one. */
const MAX_CACHED_KEYS = 10_000;

/** The message that can no longer be composed: a fault of its content, not of the peer. */
export class RenderingError extends Error {}

/** A message as composed now, unsigned. */
export async function composeMessage(deps: RenderDeps, message: Message): Promise<ComposedMail> {
  const content = await getContent(deps.db, message.senderId, message.id);
  if (content === null) throw new RenderingError("the message's content is gone");
  const attachments = await loadAttachments(deps.db, message.senderId, message.id);
  try {
    return compose({
      from: message.from,
      to: message.to,
      cc: message.cc,
      replyTo: message.replyTo,
      subject: message.subject,
      text: content.text,
      html: content.html,
      headers: content.headers,
      attachments: attachments.map((attachment) => ({
        ...attachment,
        bytes: attachment.bytes ?? new Uint8Array(),
      })),
      messageId: message.rfcMessageId ?? `<${message.id}@${deps.serviceDomain}>`,
      date: message.createdAt,
    });
  } catch (error) {
    throw new RenderingError(error instanceof Error ? error.message : String(error));
  }
}

/** The bytes to put on the wire: composed, and DKIM-signed where the From domain has a key. `now` in milliseconds. */
export async function renderMessage(
  deps: RenderDeps,
  senderId: string,
  id: string,
  now: number,
): Promise<ComposedMail> {
  const message = await getMessage(deps.db, senderId, id);
  if (message === null) throw new RenderingError("the message is gone");
  const composed = await composeMessage(deps, message);
  const domain = splitAddress(message.from.email)?.domain ?? "";
  const key = await keyOf(deps, senderId, domain);
  if (key === null) return composed;
  const privateKey = openKey(deps, key);
  const raw = await signDkim({
    raw: composed.raw,
    domain,
    selector: key.selector,
    privateKey,
    signedAt: now,
  });
  return { ...composed, raw };
}

function keyOf(deps: RenderDeps, senderId: string, domain: string): Promise<SigningKey | null> {
  return domain === onboardingDomain(deps.serviceDomain)
    ? installationKey(deps.db)
    : signingKey(deps.db, senderId, domain);
}

function openKey(deps: RenderDeps, key: SigningKey): KeyObject {
  const known = deps.keys.get(key.token);
  if (known !== undefined) return known;
  if (deps.keys.size >= MAX_CACHED_KEYS) deps.keys.clear();
  const opened = dkimPrivateKey(unseal(deps.boxKey, key.sealedPrivateKey));
  deps.keys.set(key.token, opened);
  return opened;
}
