import { test as anyTest } from "bun:test";
import { engineHere } from "./database.ts";

/** Of so many tests one runs on a replica. */
const REPLICA_SHARE = 3;

let registered = 0;

/**
 * Returns true for the tests that run on the engine on which they are loaded. All run on a file and on a server. A replica reads as
 * a file does and writes as a server does, and after each write it syncs, which takes longer than the rest of a test.
 */
function runsHere(): boolean {
  return engineHere() !== "replica" || registered++ % REPLICA_SHARE === 0;
}

type Registers = (...test: Parameters<typeof anyTest>) => void;

/** A test of which a share runs on a replica. */
export const test: Registers & Pick<typeof anyTest, "each"> = Object.assign(
  (...[name, run, options]: Parameters<Registers>) => {
    if (runsHere()) anyTest(name, run, options);
  },
  {
    each: ((cases: readonly unknown[]) => anyTest.each(cases.filter(runsHere))) as typeof anyTest.each,
  },
);

/** A test of a limit of ours over very many rows, which no engine changes: it runs on a file only. */
export const fileTest: Registers = (...[name, run, options]) => {
  if (engineHere() === "file") anyTest(name, run, options);
};
