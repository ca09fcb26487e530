import type { Clock } from "../../core/time/clock.ts";
import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import type { CommitMeter, Db } from "./db.ts";
import {
  type Engine,
  type Statement,
  type Value,
  VALUES_PER_TURN,
  weightOf,
  type Written,
} from "../sql/engine.ts";
import { ClosedError, ConstraintError, EngineError } from "../sql/errors.ts";
import { type ConfigurationQuery, ConfigCache } from "./config-cache.ts";
import { inActorsName } from "./acting.ts";
import { retryWhileBusy } from "./retry-while-busy.ts";

/** Maximum number of statements in one commit, which bounds how long it holds the event loop. */
const MAX_STATEMENTS_PER_COMMIT = 1000;
/**
 * Maximum bytes of contents and SQL in one commit, unless its engine names fewer. A single writer may exceed it.
 */
const MAX_OCTETS_PER_COMMIT = 2 * 1024 * 1024;
/**
 * Share of a commit's members that must wait for the next commit to begin at once. This is for engines that write in a thread:
 * while it writes, the members of the commit before resolve on the event loop.
 */
const SHARE_FOR_NEXT = 0.2;
/** Maximum number of ticks of the event loop that a commit waits for more members. */
const MAX_GATHERING_TURNS = 10;
/**
 * Length of a turn after which it waits for no other, milliseconds. Several turns of a busy process would take a tenth of a second,
 * and such a turn has brought many members.
 */
const LONG_TURN_MS = 4;

/**
 * Members of a commit that resolve in one tick of the event loop. Each continues at once, with one or two tenths of
 * a millisecond of work. Four hundred pushes that were claimed together would block the event loop for all of it.
 */
export const RESOLVED_PER_TURN = 64;

const NOTHING = (): void => undefined;

interface Member {
  statements: Statement[];
  resolve: (written: Written[]) => void;
  reject: (error: unknown) => void;
}

/** A database that commits the writes of several callers in one transaction. */
export class GroupCommit implements Db {
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #meter: CommitMeter | undefined;
  readonly #configCache: ConfigCache;
  #waiting: Member[] = [];
  #running: Promise<void> | null = null;
  #closed = false;

  constructor(engine: Engine, clock: Clock, meter: CommitMeter | undefined) {
    this.#engine = engine;
    this.#clock = clock;
    this.#meter = meter;
    this.#configCache = new ConfigCache(engine);
  }

  refreshReads(): void {
    if (this.#closed) return;
    this.#configCache.check();
    this.#engine.refreshReads?.();
  }

  async syncWithPrimary(): Promise<boolean> {
    this.#refuseClosed();
    if (this.#engine.syncWithPrimary === undefined) return false;
    await this.#engine.syncWithPrimary();
    return true;
  }

  async all<Row>(sql: string, args: Value[] = []): Promise<Row[]> {
    this.#refuseClosed();
    // The one cast of the store: each table's file has the query next to its row type.
    return (await this.#engine.all(sql, args)) as Row[];
  }

  async first<Row>(sql: string, args: Value[] = []): Promise<Row | null> {
    this.#refuseClosed();
    return (await this.#engine.first(sql, args)) as Row | null;
  }

  async readConfig<Row, Answer>(
    query: ConfigurationQuery<Row, Answer>,
    args: readonly string[],
  ): Promise<Answer | null> {
    this.#refuseClosed();
    return this.#configCache.answer(query, args);
  }

  async write(statements: Statement[]): Promise<Written[]> {
    if (statements.length === 0) return [];
    this.#refuseClosed();
    const acting = inActorsName(statements, this.#clock.now());
    const written = await new Promise<Written[]>((resolve, reject) => {
      this.#waiting.push({ statements: acting, resolve, reject });
      this.#running ??= this.#drain();
    });
    return acting === statements ? written : written.slice(1, -1);
  }

  async migrate(statements: Statement[]): Promise<void> {
    await this.#batch(statements);
  }

  async close(): Promise<void> {
    while (this.#running !== null) await this.#running;
    this.#closed = true;
    await this.#engine.close();
  }

  /** libSQL ends the whole process if a closed database is used. */
  #refuseClosed(): void {
    if (this.#closed) throw new ClosedError();
  }

  async #drain(): Promise<void> {
    let resolveLast = NOTHING;
    const onCpu = this.#engine.writesOnCpu === true;
    // In a thread, the first commit begins at once, and later writers join the next one. On the event loop or a server, each
    // commit waits for more members first.
    let enough = onCpu ? 0 : Infinity;
    while (this.#waiting.length > 0) {
      if (this.#waiting.length < enough) {
        resolveLast();
        resolveLast = NOTHING;
        await this.#gather();
      }
      const members = this.#take();
      const committing = this.#commit(members);
      resolveLast();
      resolveLast = await committing;
      if (onCpu) enough = members.length * SHARE_FOR_NEXT;
    }
    resolveLast();
    // In the same turn as the last look at the waiting members: a later writer starts a new drain.
    this.#running = null;
  }

  /**
   * Waits for writers that can join this commit, as long as each tick of the event loop is short and brings more.
   */
  async #gather(): Promise<void> {
    for (let turns = 0; turns < MAX_GATHERING_TURNS; turns++) {
      const before = this.#waiting.length;
      const since = this.#clock.elapsed();
      await yieldToEventLoop();
      if (this.#waiting.length === before || this.#clock.elapsed() - since >= LONG_TURN_MS) return;
    }
  }

  /** Takes the members of the next commit, oldest first. */
  #take(): Member[] {
    let statements = 0;
    let values = 0;
    let octets = 0;
    let count = 0;
    const mostOctets = this.#engine.octetsPerCommit ?? MAX_OCTETS_PER_COMMIT;
    for (const member of this.#waiting) {
      const weight = weightOf(member.statements);
      statements += member.statements.length;
      values += weight.values;
      octets += weight.octets;
      const isOver =
        statements > MAX_STATEMENTS_PER_COMMIT || values > VALUES_PER_TURN || octets > mostOctets;
      if (count > 0 && isOver) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  /** Commits the members together, without those whose statements break a constraint. Returns a function that resolves them. */
  async #commit(members: Member[]): Promise<() => void> {
    const refused = new Map<Member, unknown>();
    const resolve = await this.#commitUnlessRefused(members, refused);
    return () => {
      resolve();
      // After the rest has committed, because a refused member looks next for the row that it conflicts with.
      for (const [member, error] of refused) member.reject(error);
    };
  }

  /** Commits the members. Takes out each whose statement is refused, and tries the others again. */
  async #commitUnlessRefused(members: Member[], refused: Map<Member, unknown>): Promise<() => void> {
    let left = members;
    while (left.length > 0) {
      const startedAt = this.#clock.elapsed();
      try {
        const results = await this.#batch(left.flatMap((member) => member.statements));
        this.#meter?.committed((this.#clock.elapsed() - startedAt) / 1000, left.length);
        return () => void resolveMembers(left, results);
      } catch (error) {
        const failed = failedMember(left, error);
        if (!(error instanceof EngineError && error.fault === "constraint")) this.#meter?.failed();
        if (failed === null) {
          await this.#commitOneByOne(left, refused, error);
          return NOTHING;
        }
        refused.set(failed, asConstraintError(error));
        left = left.filter((member) => member !== failed);
      }
    }
    return NOTHING;
  }

  /**
   * Commits each member alone, if the error does not say which one failed. The refused members are tried again, too: the row
   * that they conflicted with may never have been committed.
   */
  async #commitOneByOne(left: Member[], refused: Map<Member, unknown>, error: unknown): Promise<void> {
    const again = [...refused.keys()];
    refused.clear();
    if (error instanceof EngineError && error.isDatabaseWide) {
      // A retry would fail again, each after its full timeout. And if the reply was lost, the first try may be committed.
      for (const member of [...left, ...again]) member.reject(error);
      return;
    }
    const [only] = left;
    if (left.length === 1) only?.reject(asConstraintError(error));
    else for (const member of left) await this.#commitAlone(member);
    for (const member of again) await this.#commitAlone(member);
  }

  async #commitAlone(member: Member): Promise<void> {
    try {
      void resolveMembers([member], await this.#batch(member.statements));
    } catch (error) {
      member.reject(asConstraintError(error));
    }
  }

  /** Runs one transaction. Waits while another process holds the write lock. */
  async #batch(statements: Statement[]): Promise<Written[]> {
    try {
      return await retryWhileBusy(this.#clock, () => this.#engine.batch(statements));
    } finally {
      // Even if it failed: a write whose reply was lost may be committed.
      this.#configCache.check();
    }
  }
}

/** Resolves the members with their results. */
async function resolveMembers(members: Member[], results: Written[]): Promise<void> {
  let at = 0;
  for (const [index, member] of members.entries()) {
    if (index > 0 && index % RESOLVED_PER_TURN === 0) await yieldToEventLoop();
    member.resolve(results.slice(at, at + member.statements.length));
    at += member.statements.length;
  }
}

/** Returns the member whose statement broke a constraint; null if the error does not say. */
function failedMember(members: Member[], error: unknown): Member | null {
  if (!(error instanceof EngineError) || error.fault !== "constraint" || error.statement === null)
    return null;
  let end = 0;
  for (const member of members) {
    end += member.statements.length;
    if (error.statement < end) return member;
  }
  return null;
}

function asConstraintError(error: unknown): unknown {
  return error instanceof EngineError && error.fault === "constraint" ? new ConstraintError(error) : error;
}
