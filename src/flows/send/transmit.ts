import type { Clock } from "../../core/clock.ts";
import type { RecipientStatus } from "../../core/states.ts";
import { log } from "../../log.ts";
import { verpAddress } from "../../mail/verp.ts";
import type { Job, Queue } from "../../queue/port.ts";
import type { Db, Statement, Written } from "../../store/engine/client.ts";
import { keepComposed } from "../../store/contents/message-content.ts";
import { type Claim, claimRecipient, dueGuard, rollUpMessage } from "../../store/outbox.ts";
import type { TriedRecipient } from "../../store/recipients.ts";
import { keepContent } from "../contents/keep.ts";
import { hint, parseTransmitKey } from "../hint.ts";
import { announce, type Happening } from "../notify/announce.ts";
import { recipientToken } from "../recipient-token.ts";
import { Stopping } from "../renderings.ts";
import { untilWritten } from "../until-written.ts";
import { bounceDomain } from "../own-names.ts";
import { claimCheck } from "./claim-check.ts";
import { type Deliver, type DeliveryReport, type Later, noFacts, Withdrawn } from "./outcome.ts";
import { RenderingError, UnsignedError } from "./make-mail.ts";
import { type RenderDeps, renderMessage } from "./render.ts";
import { LARGE_MAIL_OCTETS, type Seats } from "./seats.ts";
import { type Settling, settle, settlement } from "./settle.ts";
import { simulatedEnd, simulatedName, simulatedReport } from "./simulator.ts";
import { type Due, NOT_VERIFIED, takeUp } from "./take-up.ts";
import { type CustodyStatus, type RetryPolicy, type Verdict, verdictOf } from "./verdict.ts";

/** Is told of tries, for counters. Times are seconds. */
export interface TransmitMeter {
  claimed(waitedSeconds: number, retry: boolean): void;
  tried(seconds: number, outcome: RecipientStatus): void;
}

export interface TransmitDeps extends RenderDeps {
  db: Db;
  clock: Clock;
  queue: Queue;
  /** Names this process in its claims. */
  instanceId: string;
  /** Keys the tokens in return paths. */
  verpKey: Uint8Array;
  deliver: Deliver;
  /** Of mails whose templates are rendered; these and the next are one for all transmits of a process. */
  renderingSeats: Seats;
  /** Of large mails, in octets. */
  largeMailSeats: Seats;
  /** What comes of this try where that is known before the mail is composed; null where it has to be handed over. */
  foregone: () => DeliveryReport | null;
  /** What a peer's 250 means. */
  custody: CustodyStatus;
  /** Keep the bytes as composed beside the message: mail is captured, not sent. */
  capture: boolean;
  retry: RetryPolicy;
  /** Numbers in [0, 1), for jitter. */
  random: () => number;
  meter?: TransmitMeter;
}

/**
 * One job from claim to settlement. A job whose recipient is not due any more does nothing. Gives when the job is to come again
 * whose turn it is not yet; null: it is over, or left to the sweep.
 */
export async function transmit(deps: TransmitDeps, job: Job): Promise<Later | null> {
  const place = parseTransmitKey(job.key);
  const waiting = place === null ? null : await takeUp(deps, place.messageId, place.ord);
  if (waiting === null) return null;
  const { senderId, email, domain } = waiting.recipient;
  const name = simulatedName(email, deps.serviceDomain);
  const known = knownBefore(deps, waiting, name);
  if (known !== null) {
    const claiming = await claim(deps, waiting);
    await settleAtOnce(deps, claiming, settlingOf(deps, claiming, known, name));
    return null;
  }
  const octets = composedOctets(waiting);
  const { key } = job;
  const places = [
    ...(octets > LARGE_MAIL_OCTETS
      ? [{ seats: deps.largeMailSeats, asking: { senderId, lane: domain, key, weight: octets } }]
      : []),
    ...(waiting.toRender ? [{ seats: deps.renderingSeats, asking: { senderId, key } }] : []),
  ];
  const leaves: (() => void)[] = [];
  try {
    for (const { seats, asking } of places) {
      const leave = seats.take(asking);
      if (leave === null) return comeAgain(seats.free(asking));
      leaves.push(leave);
    }
    // The seat for rendering is the last, where there is one.
    await tryOnce(deps, waiting, name, waiting.toRender ? leaves.at(-1) : undefined);
  } finally {
    for (const leave of leaves) leave();
  }
  return null;
}

function comeAgain(until: Promise<void> | null): Later | null {
  return until === null ? null : { until };
}

/** About the octets that the mail has when it is composed: BASE64 makes four of three, and its lines end. */
function composedOctets({ size }: Due): number {
  return Math.ceil(size * 1.4);
}

/** @param rendered told once the mail is made: what follows is up to its peer */
async function tryOnce(
  deps: TransmitDeps,
  waiting: Due,
  name: string | null,
  rendered: (() => void) | undefined,
): Promise<void> {
  const claiming = await claim(deps, waiting);
  const rolledUp = rollUpMessage(waiting.recipient.messageId, null);
  if (!claiming.tell(await deps.db.write([...claiming.statements, rolledUp]))) return;
  const startedAt = deps.clock.now();
  // The destination may have come to rest meanwhile.
  const tried =
    knownBefore(deps, waiting, name) ?? (await attempt(deps, claiming, waiting, name, startedAt, rendered));
  if (tried === null) return;
  const settling = settlingOf(deps, claiming, tried, name);
  tellTry(deps, settling, deps.clock.now() - startedAt);
  await untilWritten(deps.clock, () => settle(deps, settling));
}

/** What is to be written of a try. */
function settlingOf(
  deps: TransmitDeps,
  { recipient, held }: Claiming,
  { report, extra, decided }: Tried,
  simulated: string | null,
): Settling {
  const now = deps.clock.now();
  const verdict =
    decided ??
    verdictOf(report, simulated === null ? deps.custody : "delivered", deps.retry, {
      attempt: held.attempt,
      ageMs: now - (recipient.firstAttemptAt ?? now),
      random: deps.random(),
    });
  return { recipient, claim: held, report, verdict, simulated: simulated !== null, extra };
}

/**
 * Claims and settles in one write: where nobody is asked there is nothing to be held meanwhile, and much mail is put off
 * at a time. A write that fails leaves the recipient due.
 */
async function settleAtOnce(deps: TransmitDeps, claiming: Claiming, settling: Settling): Promise<void> {
  const ending = await settlement(deps, settling);
  const written = await deps.db.write([...claiming.statements, ...ending.statements]);
  if (!claiming.tell(written)) return;
  tellTry(deps, settling, 0);
  ending.tell(written.slice(claiming.statements.length));
}

/** Counts a try, and logs it without the address: with the id of the message it can be found. */
function tellTry(
  { meter }: TransmitDeps,
  { claim: { messageId, ord, attempt }, verdict: { status, category, smtpCode } }: Settling,
  ms: number,
): void {
  meter?.tried(ms / 1000, status);
  log("send").debug("tried", { messageId, ord, attempt, status, category, smtpCode, ms });
}

/** What takes a recipient into our hands. */
interface Claiming {
  /** First statements of the write that claims it. */
  statements: Statement[];
  /** The recipient, and the claim that may settle it, once that is written. */
  recipient: TriedRecipient;
  held: Claim;
  /** Tells of the claim. False: somebody else has the recipient. */
  tell(written: readonly Written[]): boolean;
}

/** Takes the recipient and says `sending`. */
async function claim(deps: TransmitDeps, { recipient, dueAt, readAt }: Due): Promise<Claiming> {
  const { messageId, ord, senderId, email } = recipient;
  const attempts = recipient.attempts + 1;
  const happening: Happening = {
    messageId,
    type: "sending",
    email,
    data: { sending: { attempt: attempts } },
  };
  const guard = dueGuard(recipient, deps.instanceId, readAt);
  const announced = await announce(deps, senderId, [happening], guard);
  const firstAttemptAt = recipient.firstAttemptAt ?? readAt;
  return {
    statements: [...announced.statements, claimRecipient(recipient, deps.instanceId, readAt)],
    recipient: { ...recipient, status: "sending", attempts, firstAttemptAt, lastEventAt: readAt },
    held: { messageId, ord, instanceId: deps.instanceId, attempt: attempts },
    tell(written) {
      if (written[announced.statements.length]?.changes !== 1) return false;
      deps.meter?.claimed((readAt - dueAt) / 1000, attempts > 1);
      hint(deps.queue, "push", announced.pushes);
      return true;
    },
  };
}

interface Tried {
  report: DeliveryReport;
  extra: Statement[];
  /** Set where the verdict does not come of a peer's answer. */
  decided: Verdict | null;
}

/** What comes of a try where that is known without the mail. */
function knownBefore(deps: TransmitDeps, { refusal }: Due, simulated: string | null): Tried | null {
  if (refusal !== null) return refused(deps.clock.now(), "rejected", refusal);
  const foregone = simulated === null ? deps.foregone() : null;
  return foregone === null ? null : { report: foregone, extra: [], decided: null };
}

/** Null: the process ends and gives the claim back, or has lost it. */
async function attempt(
  deps: TransmitDeps,
  { recipient, held }: Claiming,
  { receivingDomain, readAt }: Due,
  simulated: string | null,
  startedAt: number,
  rendered: (() => void) | undefined,
): Promise<Tried | null> {
  const returnDomain = receivingDomain ?? bounceDomain(deps.serviceDomain);
  try {
    const mail = await renderMessage(deps, recipient.senderId, recipient.messageId, recipient.ord);
    rendered?.();
    const extra = deps.capture ? await kept(deps, recipient, mail.raw) : [];
    if (simulated !== null) return { ...simulate(recipient, simulated, startedAt), extra };
    const report = await deps.deliver({
      mailFrom: verpAddress(recipientToken(deps.verpKey, recipient), returnDomain),
      rcptTo: recipient.email,
      domain: recipient.domain,
      raw: mail.raw,
      smtpUtf8: mail.smtpUtf8,
      mayGo: claimCheck(deps, held, readAt),
    });
    return { report, extra, decided: null };
  } catch (error) {
    if (error instanceof RenderingError) return refused(startedAt, "rendering_failure", error.message);
    if (error instanceof UnsignedError) return refused(startedAt, "rejected", NOT_VERIFIED);
    if (error instanceof Stopping || error instanceof Withdrawn) return null;
    // A bug or a broken outside: the recipient is tried again like after any other trouble.
    log("send").error("an attempt failed", { messageId: recipient.messageId, error: String(error) });
    const report = {
      ...noFacts(startedAt),
      kind: "trouble",
      stage: "internal",
      reason: "internal error",
    } as const;
    return { report, extra: [], decided: null };
  }
}

/** What keeps the bytes as composed. */
async function kept(
  deps: TransmitDeps,
  { messageId, senderId }: TriedRecipient,
  raw: Uint8Array,
): Promise<Statement[]> {
  return keepComposed(messageId, await keepContent(deps, senderId, raw), deps.clock.now());
}

/** What comes of mail that is handed to nobody. */
function refused(startedAt: number, status: Verdict["status"], reason: string): Tried {
  const report = { ...noFacts(startedAt), kind: "undeliverable", verdict: "failed", reason } as const;
  return { report, extra: [], decided: decide(status, reason) };
}

/** The outcome of a simulated recipient; some of them end where no peer's answer leads. */
function simulate(recipient: TriedRecipient, name: string, startedAt: number): Omit<Tried, "extra"> {
  const end = simulatedEnd(name);
  const report = simulatedReport(name, recipient.attempts, startedAt);
  return { report, decided: end === null ? null : decide(end, end === "complained" ? "abuse" : "simulated") };
}

/** A final verdict without a peer's answer. */
function decide(status: Verdict["status"], reason: string): Verdict {
  return {
    status,
    reason,
    bounce: null,
    category: null,
    smtpCode: null,
    enhancedCode: null,
    diagnostic: reason,
    retryInMs: null,
  };
}
