import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import { atMostEvery } from "../../core/time/clock.ts";
import { MINUTE_MS } from "../../core/time/units.ts";
import { log } from "../../log.ts";
import type { Store } from "../../store/engine/client.ts";
import { listLogged, type LogEntry, logNews } from "../../store/events/event-log.ts";
import { firstPiece } from "./frames.ts";
import { RENEWAL_MS, watch } from "./watch.ts";

/** Entries of one project that are read at a time, in two or three milliseconds. */
export const ENTRIES_AT_A_TIME = 200;
/** Places of all projects that are read at a time. */
export const NEWS_AT_A_TIME = 2000;
/** Pause between two looks at a database that other processes write, milliseconds. */
export const LOOK_PAUSE_MS = 20;
/** Pause if Redis reports commits, milliseconds. The look then only finds commits whose message was lost. */
export const HINTED_LOOK_PAUSE_MS = 250;
/** Factor of a look's own time, so that looking takes a tenth of the time of a slow database at most. */
const PAUSE_PER_LOOK = 10;

/** Follows the events of one project. */
export interface Follower {
  /** The place in the log up to which it has the entries. The tail moves it after each `take`. */
  position: number;
  /** Takes entries in order. Those up to `position` may come again. The next ones come after it has resolved. */
  take(entries: readonly LogEntry[]): void | Promise<void>;
}

interface Channel {
  followers: Set<Follower>;
  position: number;
  running: boolean;
  /** Set if there may be entries after those that are being read. */
  again: boolean;
}

/**
 * The committed events of the projects that this process follows. The log in the database says which events there are, and in
 * which order. A commit of this process, a message of Redis, or a short pause only says when to look. Each project
 * has a separate channel, which reads at its own pace, so what waits is in the database and not in memory. Without
 * a follower it reads nothing.
 */
export class Tail {
  readonly #deps: Store;
  readonly #pauseMs: number;
  readonly #mayTell: () => boolean;
  readonly #channels = new Map<string, Channel>();
  #position = 0;
  #looking = false;
  #woken = false;
  #again = false;
  #cancel = (): void => undefined;
  #cancelRenewal = (): void => undefined;

  /** @param hinted true if `wake` reports other processes' commits */
  constructor(deps: Store, hinted: boolean) {
    this.#deps = deps;
    this.#pauseMs = hinted ? HINTED_LOOK_PAUSE_MS : LOOK_PAUSE_MS;
    this.#mayTell = atMostEvery(deps.clock, MINUTE_MS);
  }

  /** Hands the project's entries after the follower's position to it until the returned function is called. */
  join(senderId: string, follower: Follower): () => void {
    if (this.#channels.size === 0) this.#start(follower.position);
    const channel = this.#channels.get(senderId) ?? newChannel(follower.position);
    this.#channels.set(senderId, channel);
    channel.followers.add(follower);
    channel.position = Math.min(channel.position, follower.position);
    void this.#run(senderId, channel);
    return () => {
      channel.followers.delete(follower);
      if (channel.followers.size > 0 || this.#channels.get(senderId) !== channel) return;
      this.#channels.delete(senderId);
      if (this.#channels.size === 0) this.#stop();
    };
  }

  /** Looks for news soon. Called after each commit, so it must be cheap. */
  wake(): void {
    if (this.#channels.size === 0 || this.#woken) return;
    this.#woken = true;
    // Everything that commits in this turn is read together.
    setImmediate(() => {
      this.#woken = false;
      void this.#look();
    });
  }

  /** Stops looking. */
  close(): void {
    this.#channels.clear();
    this.#stop();
  }

  #stop(): void {
    this.#cancel();
    this.#cancelRenewal();
  }

  #start(position: number): void {
    this.#position = position;
    this.#lookAfter(this.#pauseMs);
    this.#renewLater();
  }

  /** Keeps the followed projects watched. If that fails, there is time for more tries before a watch ends. */
  #renewLater(): void {
    this.#cancelRenewal = this.#deps.clock.after(RENEWAL_MS, async () => {
      this.#renewLater();
      try {
        for (const senderId of this.#channels.keys()) await watch(this.#deps, senderId);
      } catch (error) {
        this.#tell(error);
      }
    });
  }

  #lookAfter(pauseMs: number): void {
    this.#cancel();
    this.#cancel = this.#deps.clock.after(pauseMs, () => void this.#look());
  }

  async #look(): Promise<void> {
    this.#again = true;
    if (this.#looking) return;
    this.#looking = true;
    const startedAt = this.#deps.clock.elapsed();
    try {
      while (this.#again && this.#channels.size > 0) {
        this.#again = await this.#readNews();
        if (this.#again) await yieldToEventLoop();
      }
    } catch (error) {
      this.#tell(error);
    }
    this.#looking = false;
    if (this.#channels.size === 0) return;
    this.#lookAfter(Math.max(this.#pauseMs, PAUSE_PER_LOOK * (this.#deps.clock.elapsed() - startedAt)));
  }

  /** Runs the channels that have news. Returns true if there may be more. */
  async #readNews(): Promise<boolean> {
    this.#again = false;
    this.#deps.db.refreshReads();
    const news = await logNews(this.#deps.db, this.#position, NEWS_AT_A_TIME);
    this.#position = news.at(-1)?.seq ?? this.#position;
    for (const senderId of new Set(news.map((entry) => entry.senderId))) {
      const channel = this.#channels.get(senderId);
      if (channel !== undefined) void this.#run(senderId, channel);
    }
    // A commit may have asked for another look in the meantime.
    return this.#again || news.length === NEWS_AT_A_TIME;
  }

  async #run(senderId: string, channel: Channel): Promise<void> {
    channel.again = true;
    if (channel.running) return;
    channel.running = true;
    try {
      while (channel.again && channel.followers.size > 0) {
        await this.#handOver(senderId, channel);
        if (channel.again) await yieldToEventLoop();
      }
    } catch (error) {
      this.#tell(error);
      // The entries are read again with the next look.
      this.#position = Math.min(this.#position, channel.position);
    }
    channel.running = false;
  }

  /** Reads the next entries of a project and hands them to its followers. */
  async #handOver(senderId: string, channel: Channel): Promise<void> {
    channel.again = false;
    const entries = await listLogged(this.#deps.db, senderId, channel.position, ENTRIES_AT_A_TIME);
    const piece = firstPiece(entries);
    const last = piece.at(-1);
    if (last === undefined) return;
    const followers = [...channel.followers];
    await Promise.all(followers.map((follower) => follower.take(piece)));
    for (const follower of followers) follower.position = Math.max(follower.position, last.seq);
    channel.position = last.seq;
    // A follower that joined in the meantime may need earlier entries.
    for (const { position } of channel.followers) channel.position = Math.min(channel.position, position);
    const isMore = piece.length < entries.length || entries.length === ENTRIES_AT_A_TIME;
    if (isMore || channel.position < last.seq) channel.again = true;
  }

  #tell(error: unknown): void {
    if (this.#mayTell()) log("live").warning("events cannot be read now", { error: String(error) });
  }
}

function newChannel(position: number): Channel {
  return { followers: new Set(), position, running: false, again: false };
}
