import { newId } from "../../core/ids.ts";
import { log } from "../../log.ts";
import type { Job, QueueName } from "../../queue/port.ts";
import { type DuePosition, type DueRecipient, dueRecipients } from "../../store/messages/due-recipients.ts";
import { rollUpMessage } from "../../store/messages/outbox.ts";
import type { Recipient } from "../../store/messages/recipients.ts";
import {
  dueScheduled,
  endWaiting,
  holdForApproval,
  scheduledGuard,
} from "../../store/messages/scheduled-sends.ts";
import { APPROVAL_EXPIRED, ofRevokedKeys, waitsForApproval } from "../../store/messages/approvals.ts";
import type { Statement } from "../../store/engine/client.ts";
import { raiseApproval } from "../../store/notices/notices.ts";
import { type DueDelivery, dueDeliveries } from "../../store/webhooks/webhook-deliveries.ts";
import { hint, transmitJob } from "../../queue/hint.ts";
import { announce, type EventDraft, writeAnnounced } from "../webhooks/announce.ts";
import { DueWalk, NewlyDue } from "./due-pages.ts";
import { DueTurns } from "./due-turns.ts";
import { postponeHeld } from "./postpone-held.ts";
import { RecentHints } from "./recent-hints.ts";
import { ClockSetBack } from "./clock-set-back.ts";
import { laneOf } from "../webhooks/push-lanes.ts";
import type { Outbox } from "../outbox.ts";

export interface SweepDeps extends Outbox {
  /** Time for which a message is tried, milliseconds. */
  giveUpMs: number;
}

/** The workers of this process. */
export interface LocalWorkers {
  /** Returns true if they do not have the job yet and have room for it. */
  wants(name: QueueName, job: Job): boolean;
  offer(name: QueueName, job: Job): void;
}

/**
 * Time after which a due row goes straight to the workers of this process, milliseconds. If Redis evicted a list but kept the
 * keys of its jobs, it ignores new hints as duplicates. So lost hints are taken up within two minutes. If several
 * processes take the row, one gets the claim.
 */
const LOST_HINT_AFTER_MS = 60_000;

/** A position in the list of due deliveries. */
type DeliveryCursor = Pick<DueDelivery, "dueAt" | "id">;

/** Rows per page. The pages of a turn hold more than one process delivers in a second. */
const ROWS_PER_PAGE = 1000;
/** Rows per page of scheduled messages. There are fewer, because each row is also written. */
const SCHEDULED_PER_PAGE = 250;
const PAGES_OF_SCHEDULED = 40;

/**
 * Hints due rows that may not be in the queue: retries, scheduled messages, and what a lost, flushed or restarted queue
 * forgot.
 */
export class Sweep {
  readonly #deps: SweepDeps;
  readonly #here: LocalWorkers;
  readonly #waits: ClockSetBack;
  readonly #newRecipients: NewlyDue<DuePosition>;
  readonly #recipients: DueTurns;
  readonly #newDeliveries: NewlyDue<DeliveryCursor>;
  readonly #deliveries: DueWalk<DeliveryCursor>;
  readonly #hints = new RecentHints();
  /** Time of the last turn. Before the first one, the clock may have been set back while no process ran. */
  #lastTurn = Number.POSITIVE_INFINITY;

  constructor(deps: SweepDeps, here: LocalWorkers) {
    this.#deps = deps;
    this.#here = here;
    this.#waits = new ClockSetBack(deps);
    const now = deps.clock.now();
    const deliveriesAfter = (after: DeliveryCursor | null) => this.#bringDeliveries(after);
    this.#newRecipients = new NewlyDue(
      (after) => this.#bringNewRecipients(after),
      (dueAt) => ({ dueAt, messageId: "", ord: 0 }),
      now,
    );
    this.#recipients = new DueTurns(deps);
    this.#newDeliveries = new NewlyDue(deliveriesAfter, (dueAt) => ({ dueAt, id: "" }), now);
    this.#deliveries = new DueWalk(deliveriesAfter);
  }

  /** Runs one turn over everything that can be due. */
  async turn(): Promise<void> {
    await this.#restartWaits();
    for (let page = 0; page < PAGES_OF_SCHEDULED && (await this.#scheduled()); page++);
    await this.#newRecipients.turn(this.#deps.clock.now());
    await this.#recipients.turn((due) => this.#hintRecipients(due));
    await this.#newDeliveries.turn(this.#deps.clock.now());
    await this.#deliveries.turn();
  }

  /** Restarts delays if the clock was set back. */
  async #restartWaits(): Promise<void> {
    const now = this.#deps.clock.now();
    if (now < this.#lastTurn) this.#waits.begin();
    this.#lastTurn = now;
    await this.#waits.turn();
  }

  /** Queues one page of scheduled messages. Returns true if another page follows. */
  async #scheduled(): Promise<boolean> {
    const { db, clock } = this.#deps;
    const now = clock.now();
    const due = await dueScheduled(db, now, SCHEDULED_PER_PAGE);
    // In parallel, so that they share commits. If one fails, the others and the rest of the turn still run.
    const revoked = await ofRevokedKeys(db, [...new Set(due.map(({ messageId }) => messageId))]);
    const ends = await Promise.allSettled(
      due.map((recipient) =>
        recipient.reason === null && revoked.has(recipient.messageId)
          ? db.write([holdForApproval(recipient, now), revokedNotice(recipient, now)])
          : this.#endWaiting(recipient, now),
      ),
    );
    const failed = ends.filter((end) => end.status === "rejected");
    if (failed.length > 0)
      log("sweep").error("scheduled messages could not be queued", {
        recipients: failed.length,
        error: String(failed[0]?.reason),
      });
    if (due.length > 0) log("sweep").debug("scheduled mail is due", { recipients: due.length });
    return due.length === SCHEDULED_PER_PAGE && failed.length === 0;
  }

  /** Queues a scheduled recipient, or fails one that was not approved in time. */
  async #endWaiting(recipient: Recipient, now: number): Promise<void> {
    const { senderId, messageId, email, reason } = recipient;
    const guard = scheduledGuard(recipient, now);
    const event: Pick<EventDraft, "type" | "data"> = waitsForApproval(reason)
      ? { type: "failed", data: { failed: { reason: APPROVAL_EXPIRED } } }
      : { type: "queued" };
    const announced = await announce(this.#deps, senderId, [{ messageId, email, ...event }], guard);
    await writeAnnounced(this.#deps, announced, {
      after: [endWaiting(recipient, now), rollUpMessage(messageId, null)],
    });
  }

  /** Hints one page of newly due recipients. Returns the position of its last row; null at the end. */
  async #bringNewRecipients(after: DuePosition | null): Promise<DuePosition | null> {
    const due = await dueRecipients(this.#deps.db, this.#deps.clock.now(), after, ROWS_PER_PAGE);
    await this.#hintRecipients(due);
    return due.length < ROWS_PER_PAGE ? null : (due.at(-1) ?? null);
  }

  async #hintRecipients(due: readonly DueRecipient[]): Promise<void> {
    const wanted = await postponeHeld(this.#deps, due);
    for (const name of ["transmit", "retry"] as const) {
      const rows = wanted.filter(({ attempts }) => attempts > 0 === (name === "retry"));
      this.#bring(
        name,
        rows.map((row) => ({ job: transmitJob(row.messageId, row.ord, row), dueAt: row.dueAt })),
      );
    }
  }

  /** Hints one page of due webhook deliveries. Returns the position of its last row; null at the end. */
  async #bringDeliveries(after: DeliveryCursor | null): Promise<DeliveryCursor | null> {
    const { db, clock } = this.#deps;
    const due = await dueDeliveries(db, clock.now(), after, ROWS_PER_PAGE);
    this.#bring(
      "push",
      due.map(({ id, senderId, webhookId, dueAt }) => ({
        job: { key: id, lane: laneOf(senderId, webhookId) },
        dueAt,
      })),
    );
    return due.length < ROWS_PER_PAGE ? null : (due.at(-1) ?? null);
  }

  /**
   * Hints due jobs that were not hinted lately. Gives those that have been due for long to our own workers, and those
   * that the queue does not take: a Redis that is full refuses each hint.
   */
  #bring(name: QueueName, due: readonly { job: Job; dueAt: number }[]): void {
    const wanted = due.filter(({ job }) => this.#here.wants(name, job));
    const elapsed = this.#deps.clock.elapsed();
    const lostBefore = this.#deps.clock.now() - LOST_HINT_AFTER_MS;
    for (const { job, dueAt } of wanted) if (dueAt < lostBefore) this.#here.offer(name, job);
    const hinted = wanted.filter(
      ({ job, dueAt }) => dueAt >= lostBefore && this.#hints.note(job.key, dueAt, elapsed),
    );
    hint(
      this.#deps.queue,
      name,
      hinted.map(({ job }) => job),
      () => {
        for (const { job } of hinted) this.#here.offer(name, job);
      },
    );
  }
}

/** Tells people of a scheduled message whose key was revoked. */
function revokedNotice({ senderId, messageId }: Recipient, at: number): Statement {
  return raiseApproval(newId("ntc", at), { senderId, messageId, recipients: 1, at });
}
