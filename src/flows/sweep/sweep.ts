import type { Clock } from "../../core/clock.ts";
import { log } from "../../log.ts";
import type { Job, Queue, QueueName } from "../../queue/port.ts";
import type { Db } from "../../store/engine/client.ts";
import { type DueRecipient, dueRecipients, rollUpMessage } from "../../store/outbox.ts";
import type { Recipient } from "../../store/recipients.ts";
import { dueScheduled, queueScheduled, scheduledGuard } from "../../store/schedule.ts";
import { type DueDelivery, dueDeliveries } from "../../store/webhook-deliveries.ts";
import { hint, transmitJob } from "../hint.ts";
import { announce } from "../notify/announce.ts";
import { DueRow } from "./due-row.ts";
import { withoutHeld } from "./held.ts";
import { RecentHints } from "./recent-hints.ts";
import { RestartedWaits } from "./restarted-waits.ts";

export interface SweepDeps {
  db: Db;
  clock: Clock;
  queue: Queue;
  /** How long a mail is tried, milliseconds. */
  giveUpMs: number;
}

/** What this process takes up itself. */
export interface Taker {
  /** Whether it could do with the job: it does not have it yet, and has room for it. */
  wants(name: QueueName, job: Job): boolean;
  offer(name: QueueName, job: Job): void;
}

/**
 * Time after which what is due is no longer left to the queue, milliseconds: a Redis that has evicted a list and kept the keys of its
 * jobs takes every hint for one that it has. Several processes may then meet over a row, and one gets the claim. What a
 * Redis in trouble has forgotten is to be on its way within two minutes.
 */
const HINT_PATIENCE_MS = 60_000;

/** Places in the rows of due recipients and due deliveries. */
type RecipientPlace = Pick<DueRecipient, "dueAt" | "messageId" | "ord">;
type DeliveryPlace = Pick<DueDelivery, "dueAt" | "id">;

/** Rows of a kind that are read at a time: with the pages of a turn, more a second than one process delivers. */
const ROWS_PER_PAGE = 1000;
/** Of scheduled mail, which is often all for the same full hour: each row is written too, so fewer at a time. */
const SCHEDULED_PER_PAGE = 250;
const PAGES_OF_SCHEDULED = 40;

/**
 * Brings to the queue what is due and may not be in it: retries whose time has come, scheduled mail, and whatever a
 * lost, flushed or restarted queue forgot.
 */
export class Sweep {
  readonly #deps: SweepDeps;
  readonly #here: Taker;
  readonly #waits: RestartedWaits;
  readonly #recipients: DueRow<RecipientPlace>;
  readonly #deliveries: DueRow<DeliveryPlace>;
  readonly #hints = new RecentHints();
  /** Time of the last turn; before the first one the clock may have been put back while nobody looked. */
  #lastTurn = Number.POSITIVE_INFINITY;

  constructor(deps: SweepDeps, here: Taker) {
    this.#deps = deps;
    this.#here = here;
    this.#waits = new RestartedWaits(deps);
    const now = deps.clock.now();
    this.#recipients = new DueRow(
      (after) => this.#bringRecipients(after),
      (dueAt) => ({ dueAt, messageId: "", ord: 0 }),
      now,
    );
    this.#deliveries = new DueRow(
      (after) => this.#bringDeliveries(after),
      (dueAt) => ({ dueAt, id: "" }),
      now,
    );
  }

  /** One turn over everything that can be due. */
  async turn(): Promise<void> {
    await this.#mindClock();
    for (let page = 0; page < PAGES_OF_SCHEDULED && (await this.#scheduled()); page++);
    await this.#recipients.turn(this.#deps.clock.now());
    await this.#deliveries.turn(this.#deps.clock.now());
  }

  /** Sees to what a clock that was put back would leave waiting. */
  async #mindClock(): Promise<void> {
    const now = this.#deps.clock.now();
    if (now < this.#lastTurn) this.#waits.begin();
    this.#lastTurn = now;
    await this.#waits.turn();
  }

  /** One page; whether another follows. */
  async #scheduled(): Promise<boolean> {
    const { db, clock } = this.#deps;
    const now = clock.now();
    const due = await dueScheduled(db, now, SCHEDULED_PER_PAGE);
    // Together, so that they share commits. One that fails keeps none of the others back, nor the rest of the turn.
    const ends = await Promise.allSettled(due.map((recipient) => this.#queueScheduled(recipient, now)));
    const failed = ends.filter((end) => end.status === "rejected");
    if (failed.length > 0)
      log("sweep").error("scheduled mail could not be queued", {
        recipients: failed.length,
        error: String(failed[0]?.reason),
      });
    if (due.length > 0) log("sweep").debug("scheduled mail is due", { recipients: due.length });
    return due.length === SCHEDULED_PER_PAGE && failed.length === 0;
  }

  async #queueScheduled({ senderId, messageId, ord, email }: Recipient, now: number): Promise<void> {
    const guard = scheduledGuard(messageId, ord, now);
    const announced = await announce(this.#deps, senderId, [{ messageId, type: "queued", email }], guard);
    await this.#deps.db.write([
      ...announced.statements,
      queueScheduled(messageId, ord, now),
      rollUpMessage(messageId, null),
    ]);
    hint(this.#deps.queue, "push", announced.pushes);
  }

  /** One page of due recipients; the place where the next one goes on, null at the end. */
  async #bringRecipients(after: RecipientPlace | null): Promise<RecipientPlace | null> {
    const due = await dueRecipients(this.#deps.db, this.#deps.clock.now(), after, ROWS_PER_PAGE);
    const going = await withoutHeld(this.#deps, due);
    for (const name of ["transmit", "retry"] as const) {
      const rows = going.filter(({ attempts }) => attempts > 0 === (name === "retry"));
      this.#bring(
        name,
        rows.map(({ messageId, ord, domain, dueAt }) => ({
          job: transmitJob(messageId, ord, domain),
          dueAt,
        })),
      );
    }
    return due.length < ROWS_PER_PAGE ? null : (due.at(-1) ?? null);
  }

  /** The same of due deliveries. */
  async #bringDeliveries(after: DeliveryPlace | null): Promise<DeliveryPlace | null> {
    const { db, clock } = this.#deps;
    const due = await dueDeliveries(db, clock.now(), after, ROWS_PER_PAGE);
    this.#bring(
      "push",
      due.map(({ id, webhookId, dueAt }) => ({ job: { key: id, lane: webhookId }, dueAt })),
    );
    return due.length < ROWS_PER_PAGE ? null : (due.at(-1) ?? null);
  }

  /** Hints what is due and was not hinted lately, and takes up itself what has been due for long. */
  #bring(name: QueueName, due: readonly { job: Job; dueAt: number }[]): void {
    const wanted = due.filter(({ job }) => this.#here.wants(name, job));
    const now = this.#deps.clock.now();
    const forgottenAt = now - HINT_PATIENCE_MS;
    for (const { job, dueAt } of wanted) if (dueAt < forgottenAt) this.#here.offer(name, job);
    const hinted = wanted.filter(
      ({ job, dueAt }) => dueAt >= forgottenAt && this.#hints.note(job.key, dueAt, now),
    );
    hint(
      this.#deps.queue,
      name,
      hinted.map(({ job }) => job),
    );
  }
}
