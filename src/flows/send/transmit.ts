import { addressKey } from "../../core/addresses.ts";
import type { Clock } from "../../core/clock.ts";
import { log } from "../../log.ts";
import { verpAddress } from "../../mail/verp.ts";
import type { Job, Queue } from "../../queue/port.ts";
import type { Db, Statement } from "../../store/client.ts";
import { keepComposed } from "../../store/messages.ts";
import { type Claim, claimedRecipient, claimRecipient, dueGuard, rollUpMessage } from "../../store/outbox.ts";
import { findRecipient, type Recipient } from "../../store/recipients.ts";
import { suppressedAmong } from "../../store/suppressions.ts";
import { hint, parseTransmitKey } from "../hint.ts";
import { announce } from "../notify/announce.ts";
import { recipientToken } from "../recipient-token.ts";
import { untilWritten } from "../until-written.ts";
import { type Deliver, type DeliveryReport, noFacts } from "./outcome.ts";
import { type RenderDeps, RenderingError, renderMessage } from "./render.ts";
import { settle } from "./settle.ts";
import { simulatedEnd, simulatedName, simulatedReport } from "./simulator.ts";
import { type CustodyStatus, type RetryPolicy, type Verdict, verdictOf } from "./verdict.ts";

export interface TransmitDeps extends RenderDeps {
  db: Db;
  clock: Clock;
  queue: Queue;
  /** Names this process in its claims. */
  instanceId: string;
  /** Keys the tokens in return paths. */
  verpKey: Uint8Array;
  deliver: Deliver;
  /** What a peer's 250 means. */
  custody: CustodyStatus;
  /** Keep the bytes as composed beside the message: mail is captured, not sent. */
  capture: boolean;
  retry: RetryPolicy;
  /** Numbers in [0, 1), for jitter. */
  random: () => number;
}

/** One job from claim to settlement. A job whose recipient is not due any more does nothing. */
export async function transmit(deps: TransmitDeps, job: Job): Promise<void> {
  const key = parseTransmitKey(job.key);
  if (key === null) return;
  const recipient = await claim(deps, key.messageId, key.ord);
  if (recipient === null) return;
  const held: Claim = {
    messageId: recipient.messageId,
    ord: recipient.ord,
    instanceId: deps.instanceId,
    attempt: recipient.attempts,
  };
  const startedAt = deps.clock.now();
  const name = simulatedName(recipient.email, deps.serviceDomain);
  const { report, extra, decided } = await attempt(deps, recipient, name, startedAt);
  const verdict =
    decided ??
    verdictOf(report, name === null ? deps.custody : "delivered", deps.retry, {
      attempt: held.attempt,
      ageMs: deps.clock.now() - (recipient.firstAttemptAt ?? startedAt),
      random: deps.random(),
    });
  const settling = { recipient, claim: held, report, verdict, simulated: name !== null, extra };
  await untilWritten(deps.clock, () => settle(deps, settling));
}

/** Takes the recipient and says `sending`, in one write. Null: not due, or somebody else has it. */
async function claim(deps: TransmitDeps, messageId: string, ord: number): Promise<Recipient | null> {
  const waiting = await findRecipient(deps.db, messageId, ord);
  if (waiting === null) return null;
  const now = deps.clock.now();
  const announced = await announce(
    deps,
    waiting.senderId,
    [
      {
        messageId,
        type: "sending",
        email: waiting.email,
        data: { sending: { attempt: waiting.attempts + 1 } },
      },
    ],
    dueGuard(messageId, ord, now),
  );
  const statements = [
    ...announced.statements,
    claimRecipient(messageId, ord, deps.instanceId, now),
    rollUpMessage(messageId, null),
  ];
  const row = (await deps.db.write(statements)).at(-2)?.rows[0];
  if (row === undefined) return null;
  hint(deps.queue, "push", announced.pushes);
  return claimedRecipient(row);
}

interface Tried {
  report: DeliveryReport;
  extra: Statement[];
  /** Set where the verdict does not come of a peer's answer. */
  decided: Verdict | null;
}

async function attempt(
  deps: TransmitDeps,
  recipient: Recipient,
  simulated: string | null,
  startedAt: number,
): Promise<Tried> {
  try {
    if (await isSuppressedNow(deps, recipient, startedAt))
      return {
        report: notTried(startedAt, "suppressed"),
        extra: [],
        decided: decide("rejected", "suppressed"),
      };
    const mail = await renderMessage(deps, recipient.senderId, recipient.messageId, recipient.ord, startedAt);
    const extra = deps.capture ? [keepComposed(recipient.messageId, mail.raw)] : [];
    if (simulated !== null) return { ...simulate(recipient, simulated, startedAt), extra };
    const report = await deps.deliver({
      mailFrom: returnPath(deps, recipient),
      rcptTo: recipient.email,
      domain: recipient.domain,
      raw: mail.raw,
      smtpUtf8: mail.smtpUtf8,
    });
    return { report, extra, decided: null };
  } catch (error) {
    if (error instanceof RenderingError) {
      const report = notTried(startedAt, error.message);
      return { report, extra: [], decided: decide("rendering_failure", error.message) };
    }
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

/** An address may have been suppressed while its mail waited for its time or for another try. */
async function isSuppressedNow(
  deps: TransmitDeps,
  { senderId, email }: Recipient,
  now: number,
): Promise<boolean> {
  return (await suppressedAmong(deps.db, senderId, [addressKey(email)], now)).size > 0;
}

function notTried(startedAt: number, reason: string): DeliveryReport {
  return { ...noFacts(startedAt), kind: "undeliverable", verdict: "failed", reason };
}

/** The outcome of a simulated recipient; some of them end where no peer's answer leads. */
function simulate(recipient: Recipient, name: string, startedAt: number): Omit<Tried, "extra"> {
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

/** The bounce address of one recipient of one message. */
function returnPath(deps: TransmitDeps, recipient: Recipient): string {
  return verpAddress(recipientToken(deps.verpKey, recipient), `bounce.${deps.serviceDomain}`);
}
