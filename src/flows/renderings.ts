import type { KeyObject } from "node:crypto";
import {
  type RenderedTemplate,
  RenderingFailure,
  renderTemplate,
  type TemplateSource,
  templateVariables,
} from "../core/templates.ts";
import type { ComposedMail } from "../mail/composing/compose.ts";
import { dkimPrivateKey } from "../mail/dkim.ts";
import { type MailLinks, type MailToMake, makeMail, RenderingError, type Signing } from "./send/make-mail.ts";

/** The process ends: what was asked for was not tried. Whoever has a claim leaves it, and it is given back. */
export class Stopping extends Error {}

/**
 * What is made of templates and messages, somewhere where a large one holds nobody up. A project's templates, and its
 * largest mails, are worked on one after another: another's wait for one of them at most. A rejection by another error
 * than those named and `Stopping` is trouble of ours.
 */
export interface Renderer {
  /**
   * The variables a template takes from its data (`templateVariables`).
   * @throws RenderingFailure of kind `syntax`
   */
  variables(senderId: string, source: TemplateSource): Promise<string[]>;
  /**
   * A template with its data (`renderTemplate`).
   * @throws RenderingFailure
   */
  template(
    senderId: string,
    source: TemplateSource,
    data: Record<string, unknown>,
  ): Promise<RenderedTemplate>;
  /**
   * The bytes of a mail (`makeMail`).
   * @throws RenderingError
   */
  mail(senderId: string, mail: MailToMake): Promise<ComposedMail>;
}

/** A mail on its way to a thread: a key is text between threads. */
export interface SentMail extends Omit<MailToMake, "signing"> {
  signing: (Omit<Signing, "privateKey"> & { privateKeyPem: string }) | null;
}

/** What is rendered, by kind: what is asked, and what is made. */
export interface Renderings {
  variables: { asked: { source: TemplateSource }; made: string[] };
  template: { asked: { source: TemplateSource; data: Record<string, unknown> }; made: RenderedTemplate };
  mail: { asked: { mail: SentMail }; made: ComposedMail };
}

export type RenderingKind = keyof Renderings;
export type Asked<Kind extends RenderingKind> = { kind: Kind } & Renderings[Kind]["asked"];
export type AnyAsked = { [Kind in RenderingKind]: Asked<Kind> }[RenderingKind];
export type Made<Kind extends RenderingKind> = Renderings[Kind]["made"];

/** What was made, or why the content could not be made into anything: errors lose their class between threads. */
export type Rendered<Kind extends RenderingKind> =
  | { made: Made<Kind>; refused?: undefined }
  | { made?: undefined; refused: Refusal };

/** `part` and `kind` are those of a `RenderingFailure`; null: a `RenderingError`. */
export type Refusal = Pick<RenderingFailure, "message"> & {
  template: Pick<RenderingFailure, "part" | "kind"> | null;
};

/** Keys opened in this thread, by their text: opening one costs as much as signing with it. */
export type OpenedKeys = Map<string, KeyObject>;

/** Opened keys kept at most: a memory bound, not a correctness one. */
const MAX_OPENED_KEYS = 1000;

const RENDERINGS: {
  readonly [Kind in RenderingKind]: (
    links: MailLinks,
    keys: OpenedKeys,
    asked: Renderings[Kind]["asked"],
  ) => Made<Kind> | Promise<Made<Kind>>;
} = {
  variables: (_, __, { source }) => templateVariables(source),
  template: (_, __, { source, data }) => renderTemplate(source, data),
  mail(links, keys, { mail }) {
    if (mail.signing === null) return makeMail(links, { ...mail, signing: null });
    const { privateKeyPem, ...signing } = mail.signing;
    return makeMail(links, { ...mail, signing: { ...signing, privateKey: opened(keys, privateKeyPem) } });
  },
};

/** Does a rendering. It holds the thread for as long as that takes. Throws where it is trouble of ours. */
export async function render<Kind extends RenderingKind>(
  links: MailLinks,
  keys: OpenedKeys,
  asked: Asked<Kind>,
): Promise<Rendered<Kind>> {
  try {
    return { made: await RENDERINGS[asked.kind](links, keys, asked) };
  } catch (error) {
    if (error instanceof RenderingError) return { refused: { message: error.message, template: null } };
    if (!(error instanceof RenderingFailure)) throw error;
    const { message, part, kind } = error;
    return { refused: { message, template: { part, kind } } };
  }
}

/** The error behind a refusal. */
export function refusedBy({ message, template }: Refusal): RenderingError | RenderingFailure {
  return template === null
    ? new RenderingError(message)
    : new RenderingFailure(template.part, template.kind, message);
}

function opened(keys: OpenedKeys, pem: string): KeyObject {
  const known = keys.get(pem);
  if (known !== undefined) return known;
  if (keys.size >= MAX_OPENED_KEYS) keys.clear();
  const key = dkimPrivateKey(pem);
  keys.set(pem, key);
  return key;
}

/** Octets that a rendering is counted for, about. */
export function octetsOf(asked: AnyAsked): number {
  return asked.kind === "mail" ? mailOctets(asked.mail) : sourceOctets(asked.source);
}

type Content = Pick<MailToMake, "html" | "text" | "attachments">;

/** Of a mail's content. */
export function mailOctets({ html, text, attachments }: Content): number {
  const bodies = (html?.length ?? 0) + (text?.length ?? 0);
  return attachments.reduce((sum, { bytes }) => sum + bytes.length, bodies);
}

/** Of a template. */
export function sourceOctets({ subject, html, text }: TemplateSource): number {
  return subject.length + (html?.length ?? 0) + (text?.length ?? 0);
}
