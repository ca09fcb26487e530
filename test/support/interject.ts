import type { Db, Statement } from "../../src/store/engine/client.ts";

/** A step of a program at its database: the first statement whose text is like that. */
export interface Step {
  sql: RegExp;
  when: "before" | "behind";
}

/**
 * Does something else once, at that step of whoever works with the database: what another process might do just then, or
 * another request of this one. Resolves to what came of it; a test that awaits it fails where the step is never reached.
 */
export function interject<Result>(db: Db, { sql, when }: Step, act: () => Promise<Result>): Promise<Result> {
  const done = Promise.withResolvers<Result>();
  const steps = { all: db.all.bind(db), first: db.first.bind(db), write: db.write.bind(db) };
  const at = async <Answer>(texts: readonly string[], step: () => Promise<Answer>): Promise<Answer> => {
    if (!texts.some((text) => sql.test(text))) return step();
    Object.assign(db, steps);
    if (when === "before") done.resolve(await act());
    const answer = await step();
    if (when === "behind") done.resolve(await act());
    return answer;
  };
  Object.assign(db, {
    all: (text: string, args?: []) => at([text], () => steps.all(text, args)),
    first: (text: string, args?: []) => at([text], () => steps.first(text, args)),
    write: (statements: Statement[]) =>
      at(
        statements.map((statement) => statement.sql),
        () => steps.write(statements),
      ),
  });
  return done.promise;
}
