import { makingKey } from "../../core/crypto/key-ring.ts";
import type { Clock } from "../../core/time/clock.ts";
import { AppError } from "../../core/errors.ts";
import { createKeyedMutex } from "../../core/concurrency/keyed-mutex.ts";
import { RenderingFailure, templateVariables } from "../../core/templates/render.ts";
import {
  type AnyAsked,
  type Asked,
  type Made,
  mailOctets,
  octetsOf,
  type Rendered,
  type Renderer,
  type RenderingKind,
  refusedBy,
  type SentMail,
  sourceOctets,
} from "../../flows/mime/rendering-tasks.ts";
import { type MailLinks, type MailToMake, makeMail } from "../../flows/mime/make-mail.ts";
import { CpuPool } from "./pool.ts";
import { openWorker, shared } from "./cpu.ts";
import { timed } from "../process/timing.ts";

/** Largest message that is composed on the main thread, which takes one or two milliseconds. */
export const MAX_MAIL_OCTETS_HERE = 32 * 1024;
/** Largest html that a text part is made from on the main thread, characters. Hostile html of this size takes milliseconds. */
export const MAX_TEXT_SOURCE_HERE = 8 * 1024;
/** Largest template whose variables are read on the main thread. Rendering may take a second at any size. */
export const MAX_SOURCE_OCTETS_HERE = 8 * 1024;
/** Size from which on a project's messages are composed one after another, bytes. */
const LARGE_MAIL_OCTETS = 1024 * 1024;
/** Time without a heartbeat after which a worker thread counts as stalled, milliseconds. Three parts of a template may take a second each. */
export const STALL_MS = 10_000;

export interface RendererOptions {
  links: MailLinks;
  /** Maximum number of worker threads. */
  cpus: number;
  /** Starts a worker thread. If left out, the real one. */
  open?: () => Worker;
}

/** The outcome of a rendering on a worker thread. `refused` means that the content cannot be rendered. */
export type RenderOutcome = "made" | "refused" | "failed";

export interface RendererDeps {
  clock: Clock;
  /** Called with the duration and outcome of each rendering on a worker thread. */
  meter?: (seconds: number, kind: RenderingKind, outcome: RenderOutcome) => void;
}

export interface OwnedRenderer extends Renderer {
  /** Ends all worker threads and rejects their tasks. */
  close(): void;
}

/** Composes usual messages on the main thread, and runs bulk mail and everything that may take long on other worker threads. */
export function openRenderer({ clock, meter }: RendererDeps, options: RendererOptions): OwnedRenderer {
  const { links, cpus, open = () => openWorker("render-worker.ts") } = options;
  const inTurn = createKeyedMutex();
  const pool = new CpuPool<AnyAsked, Rendered<RenderingKind>>(clock, {
    open,
    settings: null,
    cpus,
    stallMs: STALL_MS,
    // Not limited here, because the callers are: requests by their bodies, deliveries by their lanes.
    waiting: { tasks: Number.POSITIVE_INFINITY, octets: Number.POSITIVE_INFINITY },
    sent: inSharedMemory,
    // Templates have a separate time limit, so the machine was too slow, and the message is tried again.
    givenUp() {
      throw new AppError("service_unavailable", "This could not be rendered in time, try again later.", {
        retryAfterSeconds: 1,
      });
    },
  });

  async function onCpu<Kind extends RenderingKind>(asked: Asked<Kind>): Promise<Made<Kind>> {
    // Messages between threads have no types, but the result is of the kind of its task.
    const task = asked as AnyAsked;
    const rendered = (await timed(
      clock,
      () => pool.run(task, octetsOf(task)),
      outcomeOf,
      (seconds, outcome) => meter?.(seconds, asked.kind, outcome),
    )) as Rendered<Kind> | null;
    if (rendered === null) throw new Error("too much waits to be rendered");
    if (rendered.refused !== undefined) throw refusedBy(rendered.refused);
    return rendered.made;
  }

  return {
    async variables(senderId, source) {
      if (sourceOctets(source) <= MAX_SOURCE_OCTETS_HERE) return templateVariables(source);
      return inTurn(senderId, () => onCpu({ kind: "variables", source }));
    },
    template: (senderId, source, data) =>
      inTurn(senderId, () => onCpu({ kind: "template", source, data }).catch(tooDeep)),
    async mail(senderId, mail) {
      const octets = mailOctets(mail);
      const isQuick = octets <= MAX_MAIL_OCTETS_HERE && textSourceChars(mail) <= MAX_TEXT_SOURCE_HERE;
      // Of bulk mail there are many, and a receipt would wait for each that is composed here.
      if (isQuick && mail.stream !== "bulk") return makeMail(links, mail);
      const make = () => onCpu({ kind: "mail", mail: sentMail(mail), links: sentLinks(links) });
      const { raw, smtpUtf8 } = await (octets < LARGE_MAIL_OCTETS ? make() : inTurn(senderId, make));
      return { raw: Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength), smtpUtf8 };
    },
    close: () => pool.close(),
  };
}

function outcomeOf(rendered: Rendered<RenderingKind> | null): RenderOutcome {
  if (rendered === null) return "failed";
  return rendered.refused === undefined ? "made" : "refused";
}

/** Translates the error for data that is nested too deep for a message between threads. */
function tooDeep(error: unknown): never {
  if (!(error instanceof RangeError)) throw error;
  throw new RenderingFailure("html", "rendering", "The data is nested too deep.");
}

/** Returns the characters of the html that a text part is made from. */
function textSourceChars({ textFromHtml, text, html }: MailToMake): number {
  return textFromHtml && text === null ? (html?.length ?? 0) : 0;
}

function sentMail({ signing, ...mail }: MailToMake): SentMail {
  if (signing === null) return { ...mail, signing };
  const keys = signing.keys.map(({ privateKey, ...signer }) => ({
    ...signer,
    privateKeyPem: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  }));
  return { ...mail, signing: { domain: signing.domain, keys } };
}

/** Returns the links with the keys of now, as a thread cannot see them change. */
function sentLinks({
  hostsDomains,
  publicUrl,
  serviceDomain,
  serviceSignature,
  ...keys
}: MailLinks): MailLinks {
  return {
    hostsDomains,
    publicUrl,
    serviceDomain,
    serviceSignature,
    verpKey: makingKey(keys.verpKey),
    unsubscribeKey: makingKey(keys.unsubscribeKey),
    trackingKey: makingKey(keys.trackingKey),
  };
}

/** Puts attachments into shared memory, so that the message to the worker thread does not copy them. */
function inSharedMemory(asked: AnyAsked): AnyAsked {
  if (asked.kind !== "mail") return asked;
  const attachments = asked.mail.attachments.map((one) => ({ ...one, bytes: shared(one.bytes) }));
  return { ...asked, mail: { ...asked.mail, attachments } };
}
