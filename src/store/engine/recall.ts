import { setNewest } from "../../core/newest.ts";
import type { Engine } from "./engine.ts";

/**
 * A query that gives one row, and what is made of that. It asks tables alone that say how the installation is set up, which are
 * read for every request and every mail, and written when somebody changes a setting: those whose changes
 * `configuration_version` counts.
 */
export interface ConfigurationQuery<Row, Answer> {
  sql: string;
  /** Frozen, since many callers share it. */
  read(row: Row): Answer;
}

/** Answers kept of one query: keys, addresses or projects that are in use at a time. The first kept goes first. */
export const MAX_ANSWERS = 5000;

type Answers = Map<string, unknown>;

/**
 * Remembers what configuration queries have answered, for as long as nothing has changed those tables. Their version tells,
 * which is asked for once in each turn of the event loop that has a question, after each write of this process, and after what
 * has come over a socket: so whoever revokes a key by another process has it refused here. Where an engine has no version,
 * every question is a query.
 */
export class Recall {
  readonly #engine: Engine;
  readonly #answers = new Map<unknown, Answers>();
  #version: number | null = null;
  /** Whether the version has been asked for in this turn of the event loop, with no write since. */
  #checked = false;
  /** Whether that is to be forgotten at the end of this turn. */
  #ending = false;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** The answer to a query with these parameters; null where it gives no row, which is not remembered. */
  async answer<Row, Answer>(
    query: ConfigurationQuery<Row, Answer>,
    args: readonly string[],
  ): Promise<Answer | null> {
    if (!this.#checked && !this.#isChecked()) return this.#ask(query, args);
    const answers = this.#answersOf<Answer>(query);
    const key = JSON.stringify(args);
    const known = answers.get(key);
    if (known !== undefined) return known;
    const answer = await this.#ask(query, args);
    if (answer !== null) setNewest(answers, key, frozen(answer), MAX_ANSWERS);
    return answer;
  }

  /** Has the version asked for before the next answer. */
  check(): void {
    this.#checked = false;
  }

  /** Forgets what may not be true any more. Gives false where nobody can tell. */
  #isChecked(): boolean {
    const version = this.#engine.version?.() ?? null;
    if (version === null) return false;
    if (version !== this.#version) this.#answers.clear();
    this.#version = version;
    this.#checked = true;
    if (this.#ending) return true;
    this.#ending = true;
    setImmediate(() => {
      this.#ending = false;
      this.#checked = false;
    });
    return true;
  }

  async #ask<Row, Answer>(
    { sql, read }: ConfigurationQuery<Row, Answer>,
    args: readonly string[],
  ): Promise<Answer | null> {
    const row = await this.#engine.first(sql, [...args]);
    // The cast of the store, as in `Db.first`: query and row type stand side by side.
    return row === null ? null : read(row as Row);
  }

  #answersOf<Answer>(query: unknown): Map<string, Answer> {
    const known = this.#answers.get(query);
    // A query's answers are all of its own `read`.
    if (known !== undefined) return known as Map<string, Answer>;
    const answers = new Map<string, Answer>();
    this.#answers.set(query, answers);
    return answers;
  }
}

/** Makes sure that a caller changes no other's answer. Answers are small, and asked for once. */
function frozen<Answer>(answer: Answer): Answer {
  if (typeof answer !== "object" || answer === null || Object.isFrozen(answer)) return answer;
  for (const part of Object.values(answer)) frozen(part);
  return Object.freeze(answer);
}
