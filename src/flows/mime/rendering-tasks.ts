import type { KeyObject } from "node:crypto";
import {
  type RenderedTemplate,
  RenderingFailure,
  renderTemplate,
  type TemplateSource,
  templateVariables,
} from "../../core/templates/render.ts";
import type { ComposedMail } from "../../mail/composing/compose.ts";
import { type DkimSigner, dkimPrivateKey } from "../../mail/auth/dkim.ts";
import { type MailLinks, type MailToMake, makeMail, RenderingError } from "./make-mail.ts";

/** The process is stopping, so the task was not run. Its caller keeps the claim, which the stop frees. */
export class PoolClosedError extends Error {}

/**
 * Renders templates and composes messages, large ones on worker threads. A project's templates and largest messages run one after
 * another, so other projects wait for one of them at most. Any other error than those named and `PoolClosedError` is an
 * internal failure.
 */
export interface Renderer {
  /**
   * Returns the variables of a template (`templateVariables`).
   * @throws RenderingFailure of kind `syntax`
   */
  variables(senderId: string, source: TemplateSource): Promise<string[]>;
  /**
   * Renders a template with its data (`renderTemplate`).
   * @throws RenderingFailure
   */
  template(
    senderId: string,
    source: TemplateSource,
    data: Record<string, unknown>,
  ): Promise<RenderedTemplate>;
  /**
   * Composes a message (`makeMail`).
   * @throws RenderingError
   */
  mail(senderId: string, mail: MailToMake): Promise<ComposedMail>;
}

/** A message to compose on a worker thread. Its keys are sent as text. */
export interface SentMail extends Omit<MailToMake, "signing"> {
  signing: { domain: string; keys: (Omit<DkimSigner, "privateKey"> & { privateKeyPem: string })[] } | null;
}

/** The tasks of worker threads that render, by kind: the input and the result. */
export interface Renderings {
  variables: { asked: { source: TemplateSource }; made: string[] };
  template: { asked: { source: TemplateSource; data: Record<string, unknown> }; made: RenderedTemplate };
  mail: { asked: { mail: SentMail; links: MailLinks }; made: ComposedMail };
}

export type RenderingKind = keyof Renderings;
export type Asked<Kind extends RenderingKind> = { kind: Kind } & Renderings[Kind]["asked"];
export type AnyAsked = { [Kind in RenderingKind]: Asked<Kind> }[RenderingKind];
export type Made<Kind extends RenderingKind> = Renderings[Kind]["made"];

/** The result, or the reason why the content cannot be rendered. Errors lose their class between worker threads. */
export type Rendered<Kind extends RenderingKind> =
  | { made: Made<Kind>; refused?: undefined }
  | { made?: undefined; refused: Refusal };

/** `template` has the part and kind of a `RenderingFailure`; it is null for a `RenderingError`. */
export type Refusal = Pick<RenderingFailure, "message"> & {
  template: Pick<RenderingFailure, "part" | "kind"> | null;
};

/** Keys parsed on this thread, by their text. Parsing one costs as much as signing with it. */
export type OpenedKeys = Map<string, KeyObject>;

/** Maximum number of parsed keys that are cached. */
const MAX_OPENED_KEYS = 1000;

const RENDERINGS: {
  readonly [Kind in RenderingKind]: (
    keys: OpenedKeys,
    asked: Renderings[Kind]["asked"],
  ) => Made<Kind> | Promise<Made<Kind>>;
} = {
  variables: (_, { source }) => templateVariables(source),
  template: (_, { source, data }) => renderTemplate(source, data),
  mail(keys, { mail, links }) {
    if (mail.signing === null) return makeMail(links, { ...mail, signing: null });
    const { domain, keys: sent } = mail.signing;
    const signers = sent.map(({ privateKeyPem, ...signer }) => ({
      ...signer,
      privateKey: opened(keys, privateKeyPem),
    }));
    return makeMail(links, { ...mail, signing: { domain, keys: signers } });
  },
};

/** Runs a rendering task, which blocks the thread. Throws if there is an internal failure. */
export async function runRendering<Kind extends RenderingKind>(
  keys: OpenedKeys,
  asked: Asked<Kind>,
): Promise<Rendered<Kind>> {
  try {
    return { made: await RENDERINGS[asked.kind](keys, asked) };
  } catch (error) {
    if (error instanceof RenderingError) return { refused: { message: error.message, template: null } };
    if (!(error instanceof RenderingFailure)) throw error;
    const { message, part, kind } = error;
    return { refused: { message, template: { part, kind } } };
  }
}

/** Returns the error of a refusal. */
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

/** Estimates the bytes of a task. */
export function octetsOf(asked: AnyAsked): number {
  return asked.kind === "mail" ? mailOctets(asked.mail) : sourceOctets(asked.source);
}

type Content = Pick<MailToMake, "html" | "text" | "attachments" | "whole">;

/** Returns the bytes of a message's content. */
export function mailOctets({ html, text, attachments, whole }: Content): number {
  const bodies = (html?.length ?? 0) + (text?.length ?? 0) + (whole?.bytes.length ?? 0);
  return attachments.reduce((sum, { bytes }) => sum + bytes.length, bodies);
}

/** Returns the bytes of a template. */
export function sourceOctets({ subject, html, text }: TemplateSource): number {
  return subject.length + (html?.length ?? 0) + (text?.length ?? 0);
}
