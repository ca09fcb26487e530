import type { Clock } from "../../core/clock.ts";
import { log } from "../../log.ts";
import type { Queue } from "../../queue/port.ts";
import type { Db } from "../../store/client.ts";
import {
  type DueRecipient,
  dueRecipients,
  dueScheduled,
  queueScheduled,
  rollUpMessage,
  scheduledGuard,
} from "../../store/outbox.ts";
import type { Recipient } from "../../store/recipients.ts";
import { type DueDelivery, dueDeliveries } from "../../store/webhook-deliveries.ts";
import { hint, transmitJob } from "../hint.ts";
import { announce } from "../notify/announce.ts";

export interface SweepDeps {
  db: Db;
  clock: Clock;
  queue: Queue;
}

/** Rows of a kind that are read at a time, and how often in one turn. */
const ROWS_PER_TURN = 1000;
const PAGES_PER_TURN = 10;

/**
 * Brings to the queue what is due and may not be in it: retries whose time has come, scheduled mail, and whatever a
 * lost, flushed or restarted queue forgot. Each turn goes on where the last one ended, so that a long row of waiting
 * mail hides nothing behind it; at the end of the row it starts anew.
 */
export class Sweep {
  readonly #deps: SweepDeps;
  #afterRecipient: DueRecipient | null = null;
  #afterDelivery: DueDelivery | null = null;

  constructor(deps: SweepDeps) {
    this.#deps = deps;
  }

  /** One turn over everything that can be due. */
  async turn(): Promise<void> {
    await this.#scheduled();
    for (let page = 0; page < PAGES_PER_TURN && (await this.#recipients()); page++);
    for (let page = 0; page < PAGES_PER_TURN && (await this.#deliveries()); page++);
  }

  async #scheduled(): Promise<void> {
    const { db, clock } = this.#deps;
    const now = clock.now();
    const due = await dueScheduled(db, now, ROWS_PER_TURN);
    // Together, so that they share commits.
    await Promise.all(due.map((recipient) => this.#queueScheduled(recipient, now)));
    if (due.length > 0) log("sweep").debug("scheduled mail is due", { recipients: due.length });
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

  /** One page; whether another follows. */
  async #recipients(): Promise<boolean> {
    const { db, clock, queue } = this.#deps;
    const due = await dueRecipients(db, clock.now(), this.#afterRecipient, ROWS_PER_TURN);
    hint(
      queue,
      "transmit",
      due.map(({ messageId, ord, domain }) => transmitJob(messageId, ord, domain)),
    );
    this.#afterRecipient = due.length < ROWS_PER_TURN ? null : (due.at(-1) ?? null);
    return this.#afterRecipient !== null;
  }

  /** One page; whether another follows. */
  async #deliveries(): Promise<boolean> {
    const { db, clock, queue } = this.#deps;
    const due = await dueDeliveries(db, clock.now(), this.#afterDelivery, ROWS_PER_TURN);
    hint(
      queue,
      "push",
      due.map(({ id, webhookId }) => ({ key: id, lane: webhookId })),
    );
    this.#afterDelivery = due.length < ROWS_PER_TURN ? null : (due.at(-1) ?? null);
    return this.#afterDelivery !== null;
  }
}
