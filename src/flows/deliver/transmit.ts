import type { Demand, Release } from "../../core/concurrency/admission.ts";
import type { RightOfWay, Work } from "../../core/concurrency/right-of-way.ts";
import type { RecipientStatus } from "../../core/messages/states.ts";
import { log } from "../../log.ts";
import { verpAddress } from "../../mail/verp.ts";
import type { Job } from "../../queue/port.ts";
import { holderOf } from "../../store/projects/holdings.ts";
import type { Statement, Written } from "../../store/engine/client.ts";
import { storeComposed } from "../../store/messages/message-content.ts";
import { type Claim, claimRecipient, dueGuard, rollUpMessage } from "../../store/messages/outbox.ts";
import type { TriedRecipient } from "../../store/messages/recipients.ts";
import type { ReputationLimits } from "../../store/projects/reputation.ts";
import { prepareContent } from "../../store/messages/prepare-content.ts";
import { hint, parseTransmitKey, parseTransmitLane } from "../../queue/hint.ts";
import { announce, type EventDraft } from "../webhooks/announce.ts";
import { recipientToken } from "../mime/recipient-token.ts";
import { PoolClosedError } from "../mime/rendering-tasks.ts";
import { retryWrite } from "../../store/engine/retry-write.ts";
import { claimCheck } from "./claim-check.ts";
import { type Deliver, type DeliveryReport, type Later, noFacts, Withdrawn } from "./outcome.ts";
import { RenderingError, UnsignedError } from "../mime/make-mail.ts";
import type { ReturnDomain } from "./return-domain.ts";
import { renderMessage } from "./render.ts";
import { BROADCAST_WEIGHT, type JobAdmission, LARGE_MESSAGE_OCTETS } from "./admission.ts";
import { type SettleDeps, type Settling, settle, settlement } from "./settle.ts";
import { simulatedEnd, simulatedName, simulatedReport } from "./simulator.ts";
import { type Due, NOT_VERIFIED, readDue } from "./hold.ts";
import { decidedVerdict, type RetryPolicy, type Verdict, verdictOf } from "./verdict.ts";
import type { Outbox } from "../outbox.ts";
import type { Making } from "../mime/making.ts";

/** Counts attempts. Times are seconds. */
export interface TransmitMeter {
  claimed(waitedSeconds: number, retry: boolean): void;
  tried(seconds: number, outcome: RecipientStatus): void;
}

export interface TransmitDeps extends Making, Outbox {
  /** Names this process in its claims. */
  instanceId: string;
  deliver: Deliver;
  returnDomain: ReturnDomain;
  /** Admits messages whose template is rendered. One for all jobs of a process, as is the next. */
  renderingAdmission: JobAdmission;
  /** Admits large messages, in octets. */
  largeMessageAdmission: JobAdmission;
  /** Lets bulk mail wait for other mail. */
  rightOfWay: RightOfWay;
  /** Returns the outcome of this attempt if it is known before the message is composed, else null. */
  knownOutcome: () => DeliveryReport | null;
  /** The status that a peer's 250 gives. */
  custody: SettleDeps["custody"];
  /** Limits that suspend a sender. */
  suspension: ReputationLimits;
  /** If set, messages are captured: their bytes are stored with the message and not sent. */
  capture: boolean;
  retry: RetryPolicy;
  /** Numbers in [0, 1), for jitter. */
  random: () => number;
  meter?: TransmitMeter;
}

/**
 * Runs one job from claim to settlement. If its recipient is not due any more, does nothing. Returns when the job
 * should come again, or null if it is over or left to the sweep.
 */
export async function transmit(deps: TransmitDeps, job: Job): Promise<Later | null> {
  return deps.rightOfWay.run(parseTransmitLane(job.lane).bulk, (work) => transmitInTurn(deps, job, work));
}

async function transmitInTurn(deps: TransmitDeps, job: Job, work: Work): Promise<Later | null> {
  const named = parseTransmitKey(job.key);
  const waiting = named === null ? null : await readDue(deps, named.messageId, named.ord);
  if (waiting === null) return null;
  const name = simulatedName(waiting.recipient.email, deps.serviceDomain);
  const known = outcomeBefore(deps, waiting, name);
  if (known !== null) {
    const claiming = await claim(deps, waiting);
    await settleAtOnce(deps, claiming, settlingOf(deps, claiming, known, name));
    return null;
  }
  const releases: Release[] = [];
  try {
    for (const [admission, needed] of admissionsFor(deps, waiting)) {
      const release = admission.tryEnter(job.key, needed);
      if (release === null) return comeAgain(admission.wait(job.key, needed));
      releases.push(release);
    }
    // If a template is rendered, its release is the last.
    await tryOnce(deps, waiting, { name, work, rendered: waiting.toRender ? releases.at(-1) : undefined });
  } finally {
    for (const release of releases) release();
  }
  return null;
}

/** Returns the admissions that a message needs before its claim. */
function admissionsFor(deps: TransmitDeps, due: Due): [JobAdmission, Demand][] {
  const { senderId: owner, domain: part } = due.recipient;
  // Octets of the composed message: base64 makes four of three, and adds line ends.
  const weight = Math.ceil(due.size * 1.4);
  const needed: [JobAdmission, Demand][] = [];
  if (weight > LARGE_MESSAGE_OCTETS) needed.push([deps.largeMessageAdmission, { owner, part, weight }]);
  if (due.toRender)
    needed.push([deps.renderingAdmission, { owner, weight: due.broadcast === null ? 1 : BROADCAST_WEIGHT }]);
  return needed;
}

function comeAgain(until: Promise<void> | null): Later | null {
  return until === null ? null : { until };
}

interface Try {
  /** The name of a simulated recipient. */
  name: string | null;
  work: Work;
  /** Called once the message is made, because the rest is up to its peer. */
  rendered: (() => void) | undefined;
}

async function tryOnce(deps: TransmitDeps, waiting: Due, { name, work, rendered }: Try): Promise<void> {
  const claiming = await claim(deps, waiting);
  const rolledUp = rollUpMessage(waiting.recipient.messageId, null);
  if (!claiming.afterWrite(await deps.db.write([...claiming.statements, rolledUp]))) return;
  await work.begin();
  const startedAt = deps.clock.now();
  const since = deps.clock.elapsed();
  // The destination may have started to rest in the meantime.
  const tried =
    outcomeBefore(deps, waiting, name) ??
    (await attempt(deps, claiming, waiting, { name, work, rendered }, startedAt));
  if (tried === null) return;
  const settling = settlingOf(deps, claiming, tried, name);
  countAttempt(deps, settling, deps.clock.elapsed() - since);
  await retryWrite(deps.clock, () => settle(deps, settling));
}

/** Returns the settlement of an attempt. */
function settlingOf(
  deps: TransmitDeps,
  { recipient, held }: Claiming,
  { report, extra, decided }: Tried,
  simulated: string | null,
): Settling {
  const now = deps.clock.now();
  const verdict =
    decided ??
    verdictOf(report, simulated === null ? (report.custody ?? deps.custody) : "delivered", deps.retry, {
      attempt: held.attempt,
      ageMs: now - (recipient.firstAttemptAt ?? now),
      random: deps.random(),
    });
  return { recipient, claim: held, report, verdict, simulated: simulated !== null, extra };
}

/**
 * Claims and settles in one write. No peer is involved, and many messages are deferred together. If the write
 * fails, the recipient stays due.
 */
async function settleAtOnce(deps: TransmitDeps, claiming: Claiming, settling: Settling): Promise<void> {
  const ending = await settlement(deps, settling);
  const written = await deps.db.write([...claiming.statements, ...ending.statements]);
  if (!claiming.afterWrite(written)) return;
  countAttempt(deps, settling, 0);
  ending.afterWrite(written.slice(claiming.statements.length));
}

/** Counts an attempt and logs it. The log has the message's id in place of the address. */
function countAttempt(
  { meter }: TransmitDeps,
  { claim: { messageId, ord, attempt }, verdict: { status, category, smtpCode } }: Settling,
  ms: number,
): void {
  meter?.tried(ms / 1000, status);
  log("send").debug("tried", { messageId, ord, attempt, status, category, smtpCode, ms });
}

/** The claim of a recipient. */
interface Claiming {
  /** The first statements of the write. */
  statements: Statement[];
  /** The recipient and its claim after the write. */
  recipient: TriedRecipient;
  held: Claim;
  /** Counts the claim and hints its pushes. Returns false if another process has the recipient. */
  afterWrite(written: readonly Written[]): boolean;
}

/** Prepares the claim of a recipient with its `sending` event. */
async function claim(deps: TransmitDeps, { recipient, dueAt, readAt }: Due): Promise<Claiming> {
  const { messageId, ord, senderId, email } = recipient;
  const attempts = recipient.attempts + 1;
  const draft: EventDraft = {
    messageId,
    type: "sending",
    email,
    data: { sending: { attempt: attempts } },
  };
  const guard = dueGuard(recipient, deps.instanceId, readAt);
  const announced = await announce(deps, senderId, [draft], guard);
  const firstAttemptAt = recipient.firstAttemptAt ?? readAt;
  return {
    statements: [...announced.statements, claimRecipient(recipient, deps.instanceId, readAt)],
    recipient: { ...recipient, status: "sending", attempts, firstAttemptAt, lastEventAt: readAt },
    held: { messageId, ord, instanceId: deps.instanceId, attempt: attempts },
    afterWrite(written) {
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
  /** Null if the peer's answer gives the verdict. */
  decided: Verdict | null;
}

/** Returns the outcome of an attempt if it is known without the message. */
function outcomeBefore(deps: TransmitDeps, { refusal }: Due, simulated: string | null): Tried | null {
  if (refusal !== null) return notSent(deps.clock.now(), "rejected", refusal);
  const knownOutcome = simulated === null ? deps.knownOutcome() : null;
  return knownOutcome === null ? null : { report: knownOutcome, extra: [], decided: null };
}

/** Makes an attempt. Returns null if the process ends and gives the claim back, or has lost it. */
async function attempt(
  deps: TransmitDeps,
  { recipient, held }: Claiming,
  due: Due,
  { name: simulated, work, rendered }: Try,
  startedAt: number,
): Promise<Tried | null> {
  try {
    const mail = await renderMessage(deps, recipient.senderId, recipient.messageId, recipient.ord);
    rendered?.();
    const owner = holderOf(recipient.senderId, due.testMode);
    const extra = deps.capture && !mail.isStored ? await keepCaptured(deps, owner, recipient, mail.raw) : [];
    if (simulated !== null) return { ...simulate(recipient, simulated, startedAt), extra };
    work.end();
    const report = await deps.deliver({
      mailFrom: verpAddress(recipientToken(deps.verpKey, recipient), await deps.returnDomain(due)),
      rcptTo: recipient.email,
      domain: recipient.domain,
      raw: mail.raw,
      smtpUtf8: mail.smtpUtf8,
      stillWanted: claimCheck(deps, held, due.readAt),
    });
    await work.begin();
    return { report, extra, decided: null };
  } catch (error) {
    if (error instanceof RenderingError) return notSent(startedAt, "rendering_failure", error.message);
    if (error instanceof UnsignedError) return notSent(startedAt, "rejected", NOT_VERIFIED);
    if (error instanceof PoolClosedError || error instanceof Withdrawn) return null;
    // After a bug or a failure outside the recipient is tried again, as after any other trouble.
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

/** Returns the statements that store the bytes as composed. */
async function keepCaptured(
  deps: TransmitDeps,
  owner: string,
  { messageId }: TriedRecipient,
  raw: Uint8Array,
): Promise<Statement[]> {
  return storeComposed(messageId, await prepareContent(deps, owner, raw), deps.clock.now());
}

/** Returns the outcome of a message that is not sent. */
function notSent(startedAt: number, status: Verdict["status"], reason: string): Tried {
  const report = { ...noFacts(startedAt), kind: "undeliverable", verdict: "failed", reason } as const;
  return { report, extra: [], decided: decidedVerdict(status, reason) };
}

/** Returns the outcome of a simulated recipient. Some have a final state that no reply leads to. */
function simulate(recipient: TriedRecipient, name: string, startedAt: number): Omit<Tried, "extra"> {
  const end = simulatedEnd(name);
  const report = simulatedReport(name, recipient.attempts, startedAt);
  return {
    report,
    decided: end === null ? null : decidedVerdict(end, end === "complained" ? "abuse" : "simulated"),
  };
}
