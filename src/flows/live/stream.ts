import type { Admission, Release } from "../../core/concurrency/admission.ts";
import type { Clock } from "../../core/time/clock.ts";
import { type LoggedEvent, listLogged, type LogEntry } from "../../store/events/event-log.ts";
import { firstPiece, framesOf, octetsOf, type Shown, shownOf, type StreamFilter } from "./frames.ts";
import { ENTRIES_AT_A_TIME, type Follower, type Tail } from "./tail.ts";
import { RESUME_MS } from "./watch.ts";
import type { LargeContents } from "../../store/contents/large-reads.ts";

/** Bytes of a piece that are not counted, because the socket soon has all of them. */
const SMALL_OCTETS = 16 * 1024;
/** Time by which a stream may be later than RESUME_MS, milliseconds. */
const RESUME_MARGIN_MS = 60_000;
const NOTHING = new Uint8Array();

export interface StreamDeps extends LargeContents {
  clock: Clock;
  tail: Tail;
  /** Bounds the bytes that clients have not taken yet. */
  pending: Admission;
  /** Makes the events of a piece into bytes, once for all streams that show the same ones. */
  share: SharePiece;
}

/** Returns what `make` makes of a piece, or what it made for the same `key` before. */
export type SharePiece = (
  piece: readonly LogEntry[],
  key: string,
  make: () => Promise<Uint8Array>,
) => Promise<Uint8Array>;

/** The stream that a client asked for. */
export interface StreamWanted {
  senderId: string;
  /** The key whose revocation ends the stream. Null: none. */
  grant: string | null;
  filter: StreamFilter;
  /** Place in the log after which it starts. */
  position: number;
  /** Events of before that place that it begins with, oldest first. */
  recent: readonly LoggedEvent[];
}

/**
 * The events of a project for one client, as bytes. It holds no more than the piece that its client is taking. While the client
 * takes it, further events stay in the database, and the stream reads them from there for the client's next request.
 */
export class Stream {
  readonly #deps: StreamDeps;
  readonly #wanted: StreamWanted;
  readonly #filterKey: string;
  /** Place in the log up to which the client has the events; behind the follower's while there is one. */
  #position: number;
  /** What the client has not been given of the events that the stream begins with. */
  #recent: readonly LogEntry[];
  /** Its place at the tail; null while it reads from the database itself. */
  #follower: (Follower & { leave: () => void }) | null = null;
  /** Resolves the client's request for more, with null if the database has it. Null while the client takes a piece. */
  #resolve: ((piece: Uint8Array | null) => void) | null = null;
  #release: Release | null = null;
  #ended = false;
  /** When the client was given its last piece, milliseconds of `Clock.elapsed`; null if it has taken it. */
  #givenAt: number | null = null;

  constructor(deps: StreamDeps, wanted: StreamWanted) {
    this.#deps = deps;
    this.#wanted = wanted;
    this.#position = wanted.position;
    this.#recent = wanted.recent.map((event) => ({ seq: wanted.position, event }));
    const { types, messageId, drafts } = wanted.filter;
    this.#filterKey = JSON.stringify([types === null ? null : [...types].sort(), messageId, drafts]);
  }

  get wanted(): StreamWanted {
    return this.#wanted;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** When the client began to take a piece, milliseconds of `Clock.elapsed`; null if it waits for one. */
  get givenAt(): number | null {
    return this.#givenAt;
  }

  /** Returns the next bytes once there are some; null if the stream has ended. The client must have taken those before. */
  async next(): Promise<Uint8Array | null> {
    this.#release?.();
    this.#release = null;
    this.#givenAt = null;
    while (!this.#ended) {
      const piece = this.#follower === null ? await this.#catchUp() : await this.#wait();
      if (piece === null || piece.length === 0) continue;
      this.#givenAt = this.#deps.clock.elapsed();
      return piece;
    }
    return null;
  }

  /** Gives the client a sign of life if it waits for one. */
  beat(sign: Uint8Array): void {
    this.#give(sign);
  }

  end(): void {
    this.#ended = true;
    this.#leave();
    this.#give(null);
    this.#release?.();
    this.#release = null;
  }

  #wait(): Promise<Uint8Array | null> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  #give(piece: Uint8Array | null): void {
    const resolve = this.#resolve;
    this.#resolve = null;
    resolve?.(piece);
  }

  /** Reads the next events from the database. If there are none, follows the tail. */
  async #catchUp(): Promise<Uint8Array> {
    const { db, clock } = this.#deps;
    const { senderId } = this.#wanted;
    const isRecent = this.#recent.length > 0;
    const piece = firstPiece(
      isRecent ? this.#recent : await listLogged(db, senderId, this.#position, ENTRIES_AT_A_TIME),
    );
    const last = piece.at(-1);
    if (this.#ended) return NOTHING;
    if (last === undefined) {
      this.#follow();
      return NOTHING;
    }
    const [first] = piece;
    // So far behind, the log may have lost events already.
    if (!isRecent && first?.event && clock.now() - first.event.createdAt > RESUME_MS + RESUME_MARGIN_MS) {
      this.end();
      return NOTHING;
    }
    const events = this.#shown(piece);
    if (!(await this.#reserve(events))) return NOTHING;
    const octets = await framesOf(this.#deps, events);
    this.#position = last.seq;
    this.#recent = this.#recent.slice(piece.length);
    return octets;
  }

  /** Waits for room for the events. If too many streams wait, ends this one and returns false. */
  async #reserve(events: readonly Shown[]): Promise<boolean> {
    const weight = events.reduce((sum, event) => sum + octetsOf(event), 0);
    if (weight <= SMALL_OCTETS) return true;
    const release = await this.#deps.pending.enter({ owner: this.#wanted.senderId, weight });
    if (release === null) this.end();
    else if (this.#ended) release();
    else this.#release = release;
    return !this.#ended;
  }

  #follow(): void {
    const follower = {
      position: this.#position,
      take: (piece: readonly LogEntry[]) => this.#take(piece),
      leave: (): void => undefined,
    };
    this.#follower = follower;
    follower.leave = this.#deps.tail.join(this.#wanted.senderId, follower);
  }

  /** Leaves the tail, which may have more for the stream than it can take. */
  #leave(): void {
    if (this.#follower === null) return;
    this.#position = this.#follower.position;
    this.#follower.leave();
    this.#follower = null;
  }

  async #take(piece: readonly LogEntry[]): Promise<void> {
    const follower = this.#follower;
    if (follower === null) return;
    const events = this.#shown(piece.filter(({ seq }) => seq > follower.position));
    if (events.length === 0) return;
    if (this.#resolve !== null) {
      const key = `${this.#filterKey} ${events.length}`;
      const octets = await this.#deps.share(piece, key, () => framesOf(this.#deps, events)).catch(() => null);
      if (this.#follower !== follower) return;
      if (octets !== null && this.#resolve !== null && this.#holds(octets)) return this.#give(octets);
    }
    // The client is taking other bytes, there is no room, or a content could not be read. The events stay in the database.
    this.#leave();
    this.#give(null);
  }

  /** Reserves room for bytes that the tail has. Returns false if there is none. */
  #holds({ length: weight }: Uint8Array): boolean {
    if (weight <= SMALL_OCTETS) return true;
    this.#release = this.#deps.pending.tryEnter({ owner: this.#wanted.senderId, weight });
    return this.#release !== null;
  }

  #shown(piece: readonly LogEntry[]): Shown[] {
    return piece.flatMap((entry) => shownOf(this.#wanted.filter, entry));
  }
}
