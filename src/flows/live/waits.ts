import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import { AppError } from "../../core/errors.ts";
import type { LogEntry } from "../../store/events/event-log.ts";
import type { Message } from "../../store/messages/messages.ts";
import type { MessageFilter } from "../../store/lists/message-filter.ts";
import { matches, messagesWithIds, recipientKey, recipientKeys } from "../../store/lists/message-match.ts";
import type { Tail } from "./tail.ts";
import { watch } from "./watch.ts";
import type { Store } from "../../store/engine/client.ts";

/** Maximum number of requests of one project that wait in this process at a time. */
export const MAX_WAITS_PER_PROJECT = 1000;
/** Time between two looks for waits that are over, milliseconds. A timer and a listener for each would take memory. */
const OVER_PAUSE_MS = 250;
/**
 * Maximum number of comparisons between messages and filters in one tick of the event loop, a few milliseconds'
 * worth.
 */
const COMPARED_PER_TURN = 2000;

export interface WaitDeps extends Store {
  tail: Tail;
}

export interface WaitWanted {
  senderId: string;
  /** The messages that it waits for. */
  filter: MessageFilter;
  /** Time to wait at most, milliseconds. */
  ms: number;
  /** Ends the wait if the client has gone. */
  signal: AbortSignal;
}

/** A request that waits for messages. There may be ten thousand, so it is small and makes no closures. */
export class Wait {
  readonly filter: MessageFilter;
  readonly #signal: AbortSignal;
  /** Time of the clock's `elapsed` at which it is over. */
  readonly #endsAt: number;
  /** Messages that have come for it, by id. */
  #found: Map<string, Message> | null = null;
  #over = false;
  #resolve: (() => void) | null = null;

  constructor(filter: MessageFilter, endsAt: number, signal: AbortSignal) {
    this.filter = filter;
    this.#endsAt = endsAt;
    this.#signal = signal;
  }

  /** The messages that have come, newest first. */
  get found(): Message[] {
    return [...(this.#found?.values() ?? [])].sort((a, b) => (a.id < b.id ? 1 : -1));
  }

  /** Resolves when a message has come, the time is over, or the client has gone. */
  ended(): Promise<void> {
    if (this.#over || this.#found !== null) return Promise.resolve();
    return new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** Notes a message that has come. `wake` follows. */
  add(message: Message): void {
    this.#found ??= new Map();
    this.#found.set(message.id, message);
  }

  /** Ends the wait if a message has come. */
  wake(): void {
    if (this.#found !== null) this.end();
  }

  /** Returns whether its time is over at that time of `Clock.elapsed`, or its client has gone. */
  isOver(now: number): boolean {
    return this.#endsAt <= now || this.#signal.aborted;
  }

  end(): void {
    this.#over = true;
    this.#resolve?.();
    this.#resolve = null;
  }
}

interface Waiting {
  all: Set<Wait>;
  /**
   * Those that name a recipient, by its key, so that a thousand of them cost one look-up. A key usually has one.
   */
  byRecipient: Map<string, Wait | Set<Wait>>;
  others: Set<Wait>;
  leave: () => void;
}

/**
 * Requests that wait for messages. Those of a project follow its events together. Each event's message is read once and compared
 * with their filters, so a request costs its registration and no query.
 */
export class Waits {
  readonly #deps: WaitDeps;
  readonly #projects = new Map<string, Waiting>();
  #size = 0;
  #closed = false;
  #cancel = (): void => undefined;

  constructor(deps: WaitDeps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#size;
  }

  /**
   * Begins a wait. It sees each message that is committed after this has resolved; the caller looks for earlier ones, and calls
   * `leave` in the end.
   * @throws AppError 429 if too many requests of the project wait
   */
  async begin({ senderId, filter, ms, signal }: WaitWanted): Promise<Wait> {
    const position = this.#projects.has(senderId) ? 0 : await watch(this.#deps, senderId);
    const waiting = this.#projects.get(senderId) ?? this.#open(senderId, position);
    if (waiting.all.size >= MAX_WAITS_PER_PROJECT)
      throw new AppError(
        "rate_limited",
        `At most ${MAX_WAITS_PER_PROJECT} requests of a project wait at a time.`,
        {
          retryAfterSeconds: 1,
        },
      );
    const wait = new Wait(filter, this.#deps.clock.elapsed() + ms, signal);
    waiting.all.add(wait);
    join(waiting, wait);
    this.#size++;
    if (this.#size === 1) this.#endOver();
    if (this.#closed) wait.end();
    return wait;
  }

  /** Ends the part of a wait in this. */
  leave(senderId: string, wait: Wait): void {
    const waiting = this.#projects.get(senderId);
    if (waiting?.all.delete(wait) !== true) return;
    wait.end();
    this.#size--;
    if (this.#size === 0) this.#cancel();
    part(waiting, wait);
    if (waiting.all.size > 0) return;
    waiting.leave();
    this.#projects.delete(senderId);
  }

  /** Ends all waits. */
  close(): void {
    this.#closed = true;
    for (const { all } of this.#projects.values()) for (const wait of all) wait.end();
  }

  #open(senderId: string, position: number): Waiting {
    const waiting: Waiting = {
      all: new Set(),
      byRecipient: new Map(),
      others: new Set(),
      leave: () => undefined,
    };
    this.#projects.set(senderId, waiting);
    const take = (entries: readonly LogEntry[]) => this.#compare(senderId, waiting, entries);
    waiting.leave = this.#deps.tail.join(senderId, { position, take });
    return waiting;
  }

  /** Ends the waits that are over, now and as long as there are waits. */
  #endOver(): void {
    const now = this.#deps.clock.elapsed();
    for (const { all } of this.#projects.values()) for (const wait of all) if (wait.isOver(now)) wait.end();
    this.#cancel = this.#deps.clock.after(OVER_PAUSE_MS, () => this.#endOver());
  }

  /** Hands the messages of the entries to those who wait for them. */
  async #compare(senderId: string, waiting: Waiting, entries: readonly LogEntry[]): Promise<void> {
    const ids = new Set(entries.flatMap(({ event }) => event?.messageId ?? []));
    let compared = 0;
    for (const message of await messagesWithIds(this.#deps.db, senderId, [...ids])) {
      for (const wait of candidates(waiting, message)) {
        if (matches(message, wait.filter)) wait.add(message);
        compared++;
      }
      if (compared < COMPARED_PER_TURN) continue;
      compared = 0;
      await yieldToEventLoop();
    }
    for (const wait of waiting.all) wait.wake();
  }
}

/** Adds a wait to those that a message is compared with. */
function join({ byRecipient, others }: Waiting, wait: Wait): void {
  const { to } = wait.filter;
  if (to === undefined) return void others.add(wait);
  const key = recipientKey(to);
  const known = byRecipient.get(key);
  if (known instanceof Set) known.add(wait);
  else byRecipient.set(key, known === undefined ? wait : new Set([known, wait]));
}

/** Takes the wait away again. */
function part({ byRecipient, others }: Waiting, wait: Wait): void {
  const { to } = wait.filter;
  if (to === undefined) return void others.delete(wait);
  const key = recipientKey(to);
  const known = byRecipient.get(key);
  if (known instanceof Set) known.delete(wait);
  if (known === wait || (known instanceof Set && known.size === 0)) byRecipient.delete(key);
}

function candidates({ byRecipient, others }: Waiting, message: Message): Wait[] {
  const named = [...recipientKeys(message)].flatMap((key) => {
    const known = byRecipient.get(key);
    return known instanceof Set ? [...known] : (known ?? []);
  });
  return [...named, ...others];
}
