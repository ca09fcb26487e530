import type { Db, Statement } from "../../src/store/engine/client.ts";

/** Names a program's database step: the first statement whose text matches. */
export interface Step {
  sql: RegExp;
  when: "before" | "behind";
}

/**
 * Runs another action once, at that database step, as another process or request might. Resolves to the result of
 * the action. If the step is never reached, a test that awaits it fails.
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
