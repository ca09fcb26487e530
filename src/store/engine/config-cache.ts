import { setBounded } from "../../core/collections.ts";
import type { Engine } from "../sql/engine.ts";

/**
 * A query that returns one row, and what callers get of it. It reads configuration tables only: those that are read for every
 * request and every message, and written when a setting changes. `configuration_version` counts their changes.
 */
export interface ConfigurationQuery<Row, Answer> {
  sql: string;
  /** The answer is frozen, because many callers share it. */
  read(row: Row): Answer;
}

/**
 * Maximum number of answers cached per query, which is the number of keys, addresses or projects in use at a time.
 * Evicts the oldest.
 */
export const MAX_ANSWERS = 5000;

type Answers = Map<string, unknown>;

/**
 * Caches the answers to configuration queries until one of their tables changes. To detect that, it reads the version of
 * configuration before the first question of each tick of the event loop. It does so again after each write of this
 * process, and after data has come over a socket. So a key that another process has revoked is refused here. If an
 * engine has no version, every question is a query.
 */
export class ConfigCache {
  readonly #engine: Engine;
  readonly #answers = new Map<unknown, Answers>();
  #version: number | null = null;
  /** True if the version was read in this tick of the event loop, with no write since. */
  #isChecked = false;
  /** True if `#isChecked` will be reset at the end of this tick. */
  #willReset = false;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Returns the answer to a query, or null if it has no row. Null is not cached. */
  async answer<Row, Answer>(
    query: ConfigurationQuery<Row, Answer>,
    args: readonly string[],
  ): Promise<Answer | null> {
    if (!this.#isChecked && !this.#checkVersion()) return this.#ask(query, args);
    const answers = this.#answersOf<Answer>(query);
    const [only = ""] = args;
    // A query always has as many parameters.
    const key = args.length === 1 ? only : JSON.stringify(args);
    const known = answers.get(key);
    if (known !== undefined) return known;
    const answer = await this.#ask(query, args);
    if (answer !== null) setBounded(answers, key, frozen(answer), MAX_ANSWERS);
    return answer;
  }

  /** Makes the next answer check the version first. */
  check(): void {
    this.#isChecked = false;
  }

  /** Clears the cache if configuration has changed. Returns false if the engine cannot tell. */
  #checkVersion(): boolean {
    const version = this.#engine.configVersion?.() ?? null;
    if (version === null) return false;
    if (version !== this.#version) this.#answers.clear();
    this.#version = version;
    this.#isChecked = true;
    if (this.#willReset) return true;
    this.#willReset = true;
    setImmediate(() => {
      this.#willReset = false;
      this.#isChecked = false;
    });
    return true;
  }

  async #ask<Row, Answer>(
    { sql, read }: ConfigurationQuery<Row, Answer>,
    args: readonly string[],
  ): Promise<Answer | null> {
    const row = await this.#engine.first(sql, [...args]);
    // The cast of the store, as in `Db.first`: the query is next to its row type.
    return row === null ? null : read(row as Row);
  }

  #answersOf<Answer>(query: unknown): Map<string, Answer> {
    const known = this.#answers.get(query);
    // All answers to a query come from its own `read`.
    if (known !== undefined) return known as Map<string, Answer>;
    const answers = new Map<string, Answer>();
    this.#answers.set(query, answers);
    return answers;
  }
}

/** Freezes an answer, so that no caller can change it for another. */
function frozen<Answer>(answer: Answer): Answer {
  if (typeof answer !== "object" || answer === null || Object.isFrozen(answer)) return answer;
  for (const part of Object.values(answer)) frozen(part);
  return Object.freeze(answer);
}
