import { setBounded } from "../../core/collections.ts";
import type { Store } from "../../store/engine/client.ts";
import {
  type DuePosition,
  type DueRecipient,
  type DueStream,
  dueOfStreams,
  FIRST_DUE,
  waitingProjects,
} from "../../store/messages/due-recipients.ts";

/** Maximum number of projects that a round adds to those of the rounds before. */
export const PROJECTS_PER_ROUND = 500;
export const ROUNDS_PER_TURN = 4;
/** Rows per round, or one for each stream if there are more. The rounds of a turn hold more than one process delivers in a second. */
export const ROWS_PER_ROUND = 1000;
/** Maximum number of streams whose positions are remembered. A forgotten one is read from its start again. */
const MAX_POSITIONS = 10_000;

/** A stream with the position up to which it was read. */
type Walked = DueStream & DuePosition;

/**
 * Walks through all due recipients. Each round gives the projects equal shares, and in a project its bulk mail and the
 * rest. So a message is read in the first turn after it became due, however many rows another project has.
 */
export class DueTurns {
  readonly #deps: Store;
  /** Positions in streams that a turn did not finish, by key. */
  readonly #positions = new Map<string, DuePosition>();
  /** The project after which the next round begins. Empty: with the first one. */
  #after = "";

  constructor(deps: Store) {
    this.#deps = deps;
  }

  /** Reads the rounds of a turn. Ends early once all is read. */
  async turn(handle: (due: readonly DueRecipient[]) => Promise<void>): Promise<void> {
    const { db, clock } = this.#deps;
    let streams: Walked[] = [];
    for (let round = 0; round < ROUNDS_PER_TURN; round++) {
      if (round === 0 || this.#after !== "") streams.push(...(await this.#nextStreams()));
      if (streams.length === 0) return;
      const each = Math.max(1, Math.floor(ROWS_PER_ROUND / streams.length));
      const due = await dueOfStreams(db, clock.now(), streams, each);
      streams = streams.filter((stream, nth) => this.#isUnfinished(stream, due[nth] ?? [], each));
      await handle(due.flat());
    }
  }

  async #nextStreams(): Promise<Walked[]> {
    const projects = await waitingProjects(this.#deps.db, this.#after, PROJECTS_PER_ROUND);
    this.#after = projects.length < PROJECTS_PER_ROUND ? "" : (projects.at(-1) ?? "");
    return projects.flatMap((senderId) =>
      [false, true].map((bulk) => {
        const position = this.#positions.get(keyOf({ senderId, bulk })) ?? FIRST_DUE;
        return { senderId, bulk, ...position };
      }),
    );
  }

  /** Notes up to where a stream was read. Returns false at its end, after which the next turn begins with its first row. */
  #isUnfinished(stream: Walked, found: readonly DueRecipient[], limit: number): boolean {
    const last = found.at(-1);
    const key = keyOf(stream);
    if (last === undefined || found.length < limit) {
      this.#positions.delete(key);
      return false;
    }
    const { dueAt, messageId, ord } = last;
    Object.assign(stream, { dueAt, messageId, ord });
    setBounded(this.#positions, key, { dueAt, messageId, ord }, MAX_POSITIONS);
    return true;
  }
}

function keyOf({ senderId, bulk }: DueStream): string {
  return `${senderId} ${bulk}`;
}
