import type { Clock } from "../../core/clock.ts";
import { turn } from "../../core/turn.ts";
import type { CommitMeter, Db } from "./db.ts";
import {
  ConstraintError,
  type Engine,
  EngineError,
  type Statement,
  type Value,
  VALUES_PER_TURN,
  weightOf,
  type Written,
} from "./engine.ts";
import { type ConfigurationQuery, Recall } from "./recall.ts";
import { untilFree } from "./until-free.ts";

/** Statements merged into one commit at most: bounds how long one commit holds the event loop. */
const MAX_STATEMENTS_PER_COMMIT = 1000;
/** Octets of contents and texts in one commit at most, unless a single writer brings more: they hold the event loop. */
const MAX_OCTETS_PER_COMMIT = 2 * 1024 * 1024;
/**
 * Share of a commit's members that are enough for the next one, where a thread does that: it is begun before those of the first
 * are told, whose next steps are work for this thread.
 */
const SHARE_FOR_NEXT = 0.2;
/** Turns of the event loop that a commit waits for further members at most. */
const MAX_GATHERING_TURNS = 10;

/**
 * Members of a commit that are told of it in one turn of the event loop. Each goes on at once, by a tenth of a millisecond or
 * two of work: four hundred pushes that were claimed together would hold it for all of that.
 */
export const TOLD_PER_TURN = 64;

const NOBODY = (): void => undefined;

interface Member {
  statements: Statement[];
  resolve: (written: Written[]) => void;
  reject: (error: unknown) => void;
}

/** A database whose writes go to the engine in shared commits. */
export class GroupCommit implements Db {
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #meter: CommitMeter | undefined;
  readonly #recall: Recall;
  #waiting: Member[] = [];
  #running: Promise<void> | null = null;
  #closed = false;

  constructor(engine: Engine, clock: Clock, meter: CommitMeter | undefined) {
    this.#engine = engine;
    this.#clock = clock;
    this.#meter = meter;
    this.#recall = new Recall(engine);
  }

  heard(): void {
    if (this.#closed) return;
    this.#recall.check();
    this.#engine.renew?.();
  }

  async catchUp(): Promise<boolean> {
    this.#refuseClosed();
    if (this.#engine.catchUp === undefined) return false;
    await this.#engine.catchUp();
    return true;
  }

  async all<Row>(sql: string, args: Value[] = []): Promise<Row[]> {
    this.#refuseClosed();
    // The one cast of the store: the query and its row type stand side by side in each table's file.
    return (await this.#engine.all(sql, args)) as Row[];
  }

  async first<Row>(sql: string, args: Value[] = []): Promise<Row | null> {
    this.#refuseClosed();
    return (await this.#engine.first(sql, args)) as Row | null;
  }

  async recall<Row, Answer>(
    query: ConfigurationQuery<Row, Answer>,
    args: readonly string[],
  ): Promise<Answer | null> {
    this.#refuseClosed();
    return this.#recall.answer(query, args);
  }

  async write(statements: Statement[]): Promise<Written[]> {
    if (statements.length === 0) return [];
    this.#refuseClosed();
    return new Promise((resolve, reject) => {
      this.#waiting.push({ statements, resolve, reject });
      this.#running ??= this.#drain();
    });
  }

  async migrate(statements: Statement[]): Promise<void> {
    await this.#batch(statements);
  }

  async close(): Promise<void> {
    while (this.#running !== null) await this.#running;
    this.#closed = true;
    await this.#engine.close();
  }

  /** libSQL ends the whole process where a closed database is asked. */
  #refuseClosed(): void {
    if (this.#closed) throw new Error("the database is closed");
  }

  async #drain(): Promise<void> {
    let tell = NOBODY;
    const isInThread = this.#engine.isInThread === true;
    // There the first waits for nobody, and who comes meanwhile joins the next one: the disk is near, unlike a server.
    let enough = isInThread ? 0 : Infinity;
    while (this.#waiting.length > 0) {
      if (this.#waiting.length < enough) {
        tell();
        tell = NOBODY;
        await this.#gather();
      }
      const members = this.#take();
      const committing = this.#commit(members);
      tell();
      tell = await committing;
      if (isInThread) enough = members.length * SHARE_FOR_NEXT;
    }
    tell();
    // In the same turn as the last look at who waits: a writer that comes now starts a new drain.
    this.#running = null;
  }

  /** Waits, turn by turn of the event loop and as long as each brings more writers, for those who can join this commit. */
  async #gather(): Promise<void> {
    for (let turns = 0; turns < MAX_GATHERING_TURNS; turns++) {
      const before = this.#waiting.length;
      await turn();
      if (this.#waiting.length === before) return;
    }
  }

  /** The members of the next commit, oldest first. */
  #take(): Member[] {
    let statements = 0;
    let values = 0;
    let octets = 0;
    let count = 0;
    for (const member of this.#waiting) {
      const weight = weightOf(member.statements);
      statements += member.statements.length;
      values += weight.values;
      octets += weight.octets;
      const isOver =
        statements > MAX_STATEMENTS_PER_COMMIT || values > VALUES_PER_TURN || octets > MAX_OCTETS_PER_COMMIT;
      if (count > 0 && isOver) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  /**
   * Commits the members together; a member whose statement is refused is taken out and the others are tried anew.
   * Gives what tells them.
   */
  async #commit(members: Member[]): Promise<() => void> {
    const refused = new Map<Member, unknown>();
    const tell = await this.#commitOthers(members, refused);
    return () => {
      tell();
      // Told after the others have committed: who was refused looks next for the row that stood in its way.
      for (const [member, error] of refused) member.reject(error);
    };
  }

  /** Puts the members that are refused aside. */
  async #commitOthers(members: Member[], refused: Map<Member, unknown>): Promise<() => void> {
    let left = members;
    while (left.length > 0) {
      const startedAt = this.#clock.now();
      try {
        const results = await this.#batch(left.flatMap((member) => member.statements));
        this.#meter?.committed((this.#clock.now() - startedAt) / 1000, left.length);
        return () => void settle(left, results);
      } catch (error) {
        const guilty = guiltyMember(left, error);
        if (!(error instanceof EngineError && error.fault === "constraint")) this.#meter?.failed();
        if (guilty === null) {
          await this.#commitApart(left, refused, error);
          return NOBODY;
        }
        refused.set(guilty, translate(error));
        left = left.filter((member) => member !== guilty);
      }
    }
    return NOBODY;
  }

  /**
   * Where nothing tells who failed, each member stands for itself. So does who was refused before: what stood in its way
   * may be a row that is not there now.
   */
  async #commitApart(left: Member[], refused: Map<Member, unknown>, error: unknown): Promise<void> {
    const others = [...refused.keys()];
    refused.clear();
    if (error instanceof EngineError && error.ofAll) return rejectAll([...left, ...others], error);
    const [only] = left;
    if (left.length === 1) only?.reject(translate(error));
    else for (const member of left) await this.#commitAlone(member);
    for (const member of others) await this.#commitAlone(member);
  }

  async #commitAlone(member: Member): Promise<void> {
    try {
      void settle([member], await this.#batch(member.statements));
    } catch (alone) {
      member.reject(translate(alone));
    }
  }

  /** One transaction; waits while another process holds the write lock. */
  async #batch(statements: Statement[]): Promise<Written[]> {
    try {
      return await untilFree(this.#clock, () => this.#engine.batch(statements));
    } finally {
      // What is refused may have taken effect all the same.
      this.#recall.check();
    }
  }
}

/** Tells members what they have written, in their order. */
async function settle(members: Member[], results: Written[]): Promise<void> {
  let at = 0;
  for (const [index, member] of members.entries()) {
    if (index > 0 && index % TOLD_PER_TURN === 0) await turn();
    member.resolve(results.slice(at, at + member.statements.length));
    at += member.statements.length;
  }
}

/**
 * Nobody is tried anew where the database as a whole has failed: it would fail again, each time after its limit, and
 * where the reply was lost the first try may have been committed.
 */
function rejectAll(members: Member[], error: EngineError): void {
  for (const member of members) member.reject(error);
}

function guiltyMember(members: Member[], error: unknown): Member | null {
  if (!(error instanceof EngineError) || error.fault !== "constraint" || error.statement === null)
    return null;
  let end = 0;
  for (const member of members) {
    end += member.statements.length;
    if (error.statement < end) return member;
  }
  return null;
}

function translate(error: unknown): unknown {
  return error instanceof EngineError && error.fault === "constraint" ? new ConstraintError(error) : error;
}
