import { expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { turn } from "../../src/core/turn.ts";
import { overEngine } from "../../src/store/engine/client.ts";

/** A database whose engine says when a batch begins, and the log that it and its writers keep. */
function logged(isElsewhere: boolean) {
  const log: string[] = [];
  const ends: (() => void)[] = [];
  const db = overEngine(
    {
      isElsewhere,
      all: async () => [],
      first: async () => null,
      close: async () => undefined,
      async batch(statements) {
        log.push(`begins ${statements.length}`);
        await new Promise<void>((resolve) => ends.push(resolve));
        return statements.map(() => ({ rows: [], changes: 1 }));
      },
    },
    systemClock,
  );
  const write = (name: string): Promise<unknown> =>
    db.write([{ sql: "put", args: [name] }]).then(() => log.push(`told ${name}`));
  return { log, ends, write };
}

async function turns(): Promise<void> {
  for (let count = 0; count < 15; count++) await turn();
}

/** Ten write, and while that is committed so many more do; then all commits end. */
async function tenAnd(more: number, isElsewhere: boolean): Promise<string[]> {
  const { log, ends, write } = logged(isElsewhere);
  const all = Array.from({ length: 10 }, (_, at) => write(`a${at}`));
  await turns();
  for (let at = 0; at < more; at++) all.push(write(`b${at}`));
  await turns();
  while (ends.length > 0) {
    ends.shift()?.();
    await turns();
  }
  await Promise.all(all);
  return log.filter((said) => !/[1-9]$/.test(said) || said.startsWith("begins"));
}

test("a commit that is made elsewhere is begun, where enough wait for it, before those of the one before are told", async () => {
  expect(await tenAnd(2, true)).toEqual(["begins 10", "begins 2", "told a0", "told b0"]);
});

test("where fewer wait, those are told first whose next step may be to join it", async () => {
  expect(await tenAnd(1, true)).toEqual(["begins 10", "told a0", "begins 1", "told b0"]);
});

test("a commit that is made here is not begun before those of the one before are told", async () => {
  expect(await tenAnd(9, false)).toEqual(["begins 10", "told a0", "begins 9", "told b0"]);
});
