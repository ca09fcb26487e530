import type { Clock } from "../core/clock.ts";
import { AppError } from "../core/errors.ts";
import { oneByOne } from "../core/one-by-one.ts";
import { RenderingFailure, templateVariables } from "../core/templates.ts";
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
} from "../flows/renderings.ts";
import { type MailLinks, type MailToMake, makeMail } from "../flows/send/make-mail.ts";
import { ThreadPool } from "./threads/pool.ts";
import { openWorker, shared } from "./threads/thread.ts";
import { timed } from "./timed.ts";

/** Octets of a mail that is made where it is asked for, in one or two milliseconds; larger ones go to a thread. */
export const MAX_MAIL_OCTETS_HERE = 32 * 1024;
/** Octets of a template whose variables are looked for where it is asked for. Rendering may take its second at any size. */
export const MAX_SOURCE_OCTETS_HERE = 8 * 1024;
/** Octets of a mail from which on a project's are made one after another. */
const LARGE_MAIL_OCTETS = 1024 * 1024;
/** Silence after which a thread is taken to be held: three parts of a template may take a second each, and a busy machine longer. */
export const STALL_MS = 10_000;

export interface RendererOptions {
  links: MailLinks;
  /** Threads at most. */
  threads: number;
  /** Starts a thread; left out: the real one. */
  open?: () => Worker;
}

/** What came of a rendering in a thread. `refused`: by its content's fault. */
export type RenderOutcome = "made" | "refused" | "failed";

export interface RendererDeps {
  clock: Clock;
  /** Is told how long each took, from its project's turn to its end. */
  meter?: (seconds: number, kind: RenderingKind, outcome: RenderOutcome) => void;
}

export interface OwnedRenderer extends Renderer {
  /** Ends all threads; what they have in hand is rejected. */
  close(): void;
}

/** Makes usual mails at once, and everything that may take long in threads of their own. */
export function openRenderer({ clock, meter }: RendererDeps, options: RendererOptions): OwnedRenderer {
  const { links, threads, open = () => openWorker("render-worker.ts") } = options;
  const inTurn = oneByOne();
  const pool = new ThreadPool<AnyAsked, Rendered<RenderingKind>>(clock, {
    open,
    settings: links,
    threads,
    stallMs: STALL_MS,
    // Whoever asks holds what is asked for, and is bounded: requests by their bodies, attempts by their lanes.
    waiting: { tasks: Number.POSITIVE_INFINITY, octets: Number.POSITIVE_INFINITY },
    sent: inSharedMemory,
    // Templates stop by themselves within seconds, so it is the machine's doing: a mail is tried again.
    givenUp() {
      throw new AppError("service_unavailable", "This could not be rendered in time, try again later.", {
        retryAfter: 1,
      });
    },
  });

  async function inThread<Kind extends RenderingKind>(asked: Asked<Kind>): Promise<Made<Kind>> {
    // What a thread makes is of the kind that it was asked for: messages between threads carry no types.
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
      return inTurn(senderId, () => inThread({ kind: "variables", source }));
    },
    template: (senderId, source, data) =>
      inTurn(senderId, () => inThread({ kind: "template", source, data }).catch(tooDeep)),
    async mail(senderId, mail) {
      const octets = mailOctets(mail);
      if (octets <= MAX_MAIL_OCTETS_HERE) return makeMail(links, mail);
      const make = () => inThread({ kind: "mail", mail: sentMail(mail) });
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

/** Data of tens of thousands of levels is JSON all the same, and more than a message between threads can carry. */
function tooDeep(error: unknown): never {
  if (!(error instanceof RangeError)) throw error;
  throw new RenderingFailure("html", "rendering", "The data is nested too deep.");
}

function sentMail({ signing, ...mail }: MailToMake): SentMail {
  if (signing === null) return { ...mail, signing };
  const { privateKey, ...named } = signing;
  const privateKeyPem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  return { ...mail, signing: { ...named, privateKeyPem } };
}

/** Attachments in memory that both threads see, not copied once more by the message. */
function inSharedMemory(asked: AnyAsked): AnyAsked {
  if (asked.kind !== "mail") return asked;
  const attachments = asked.mail.attachments.map((one) => ({ ...one, bytes: shared(one.bytes) }));
  return { ...asked, mail: { ...asked.mail, attachments } };
}
