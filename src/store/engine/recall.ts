import type { Engine, Statement, Written } from "./engine.ts";

/**
 * The tables that say how the installation is set up. They are read for every request and every mail, and written when
 * somebody changes a setting.
 */
export const CONFIGURATION = [
  "accounts",
  "senders",
  "api_keys",
  "domains",
  "dkim_keys",
  "inboxes",
  "webhooks",
] as const;

/** A query of configuration tables alone that gives one row, and what is made of that. */
export interface ConfigurationQuery<Row, Answer> {
  sql: string;
  /** Frozen, since many callers share it. */
  read(row: Row): Answer;
}

/** Answers kept of one query: keys, addresses or projects that are in use at a time. The first kept goes first. */
export const MAX_ANSWERS = 5000;

/** Texts of statements whose kind is remembered; those of large writes vary with their rows. */
const MAX_TEXTS = 1000;

const CONFIGURED = CONFIGURATION.join("|");
/**
 * Statements that change none of those tables, by how they begin. `received_count` is counted for every mail, and no
 * configuration query may tell of it.
 */
const ELSEWHERE = new RegExp(
  `^\\s*(?:UPDATE inboxes SET received_count = received_count \\+ 1 WHERE|(?:INSERT INTO|UPDATE|DELETE FROM) (?!(?:${CONFIGURED})\\b)[a-z_0-9]+[\\s(])`,
);

type Answers = Map<string, unknown>;

/**
 * Remembers what configuration queries have answered, for as long as nothing has changed those tables. Writes of this
 * process are watched as they commit. Those of others show in the file's version, which is asked for once in each turn of
 * the event loop that has a question: so what another process had committed before that turn is seen. Where an engine has
 * no version, every question is a query.
 */
export class Recall {
  readonly #engine: Engine;
  readonly #answers = new Map<unknown, Answers>();
  /** Whether a statement's text changes configuration. The texts of a process are few. */
  readonly #known = new Map<string, boolean>();
  #version: number | null = null;
  /** Whether the version has been asked for in this turn of the event loop. */
  #checked = false;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** The answer to a query with these parameters; null where it gives no row, which is not remembered. */
  async answer<Row, Answer>(
    query: ConfigurationQuery<Row, Answer>,
    args: readonly string[],
  ): Promise<Answer | null> {
    if (!this.#checked && !this.#check()) return this.#ask(query, args);
    const answers = this.#answersOf<Answer>(query);
    const key = JSON.stringify(args);
    const known = answers.get(key);
    if (known !== undefined) return known;
    const answer = await this.#ask(query, args);
    if (answer !== null) keep(answers, key, frozen(answer));
    return answer;
  }

  /** Hears of a committed write, statement by statement, with what each did. */
  written(statements: readonly Statement[], results: readonly Written[]): void {
    if (this.#answers.size === 0) return;
    const changed = statements.some(
      ({ sql }, at) => results[at]?.changes !== 0 && this.#changesConfiguration(sql),
    );
    if (changed) this.forget();
  }

  /** Forgets all answers. One on its way is kept by nobody. */
  forget(): void {
    this.#answers.clear();
  }

  /** Forgets what may not be true any more. Gives false where nobody can tell. */
  #check(): boolean {
    const version = this.#engine.version?.() ?? null;
    if (version === null) return false;
    if (version !== this.#version) this.forget();
    this.#version = version;
    this.#checked = true;
    setImmediate(() => {
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

  #changesConfiguration(sql: string): boolean {
    const known = this.#known.get(sql);
    if (known !== undefined) return known;
    const changes = !ELSEWHERE.test(sql);
    if (this.#known.size >= MAX_TEXTS) this.#known.clear();
    this.#known.set(sql, changes);
    return changes;
  }
}

/** Makes sure that a caller changes no other's answer. Answers are small, and asked for once. */
function frozen<Answer>(answer: Answer): Answer {
  if (typeof answer !== "object" || answer === null || Object.isFrozen(answer)) return answer;
  for (const part of Object.values(answer)) frozen(part);
  return Object.freeze(answer);
}

function keep<Answer>(answers: Map<string, Answer>, key: string, answer: Answer): void {
  const oldest = answers.size >= MAX_ANSWERS ? answers.keys().next().value : undefined;
  if (oldest !== undefined) answers.delete(oldest);
  answers.set(key, answer);
}
