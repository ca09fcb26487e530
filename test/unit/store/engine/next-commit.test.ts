import { expect, test } from "bun:test";
import { systemClock } from "../../../../src/clock.ts";
import { yieldToEventLoop } from "../../../../src/core/concurrency/event-loop.ts";
import { overEngine } from "../../../../src/store/engine/client.ts";
import type { Engine } from "../../../../src/store/sql/engine.ts";

/** A database whose engine reports when a batch begins, with a log of it and its writers. */
function logged(engine: Pick<Engine, "writesOnCpu" | "octetsPerCommit">, clock = systemClock) {
  const log: string[] = [];
  const ends: (() => void)[] = [];
  const db = overEngine(
    {
      ...engine,
      all: async () => [],
      first: async () => null,
      close: async () => undefined,
      async batch(statements) {
        log.push(`begins ${statements.length}`);
        await new Promise<void>((resolve) => ends.push(resolve));
        return statements.map(() => ({ rows: [], changes: 1 }));
      },
    },
    clock,
  );
  const write = (name: string): Promise<unknown> =>
    db.write([{ sql: "put", args: [name] }]).then(() => log.push(`told ${name}`));
  return { log, ends, write };
}

async function turns(): Promise<void> {
  for (let count = 0; count < 15; count++) await yieldToEventLoop();
}

/**
 * Writes once, ten times while that is committed, and then the given number. Each commit ends once they all wait.
 */
async function oneTenAnd(more: number, isInThread: boolean): Promise<string[]> {
  const { log, ends, write } = logged({ writesOnCpu: isInThread });
  const all: Promise<unknown>[] = [];
  for (const [name, count] of Object.entries({ a: 1, b: 10, c: more })) {
    for (let at = 0; at < count; at++) all.push(write(`${name}${at}`));
    await turns();
    if (name !== "a") ends.shift()?.();
    await turns();
  }
  ends.shift()?.();
  await Promise.all(all);
  return log.filter((said) => !/^told .[1-9]$/.test(said));
}

test("if enough writers wait, a commit on a thread begins before the previous commit's writers are resumed", async () => {
  const said = await oneTenAnd(2, true);
  expect(said).toEqual(["begins 1", "begins 10", "told a0", "begins 2", "told b0", "told c0"]);
});

test("if fewer wait, the previous writers are resumed first, because their next write may join", async () => {
  const said = await oneTenAnd(1, true);
  expect(said).toEqual(["begins 1", "begins 10", "told a0", "told b0", "begins 1", "told c0"]);
});

test("a commit on this thread does not begin before the previous commit's writers are resumed", async () => {
  const said = await oneTenAnd(9, false);
  expect(said).toEqual(["begins 1", "told a0", "begins 10", "told b0", "begins 9", "told c0"]);
});

test.each([
  ["short", 1, "begins 9"],
  ["long", 4, "begins 2"],
])("a commit waits for more writers while turns of the event loop are %s", async (_, turnMs, begins) => {
  let elapsed = 0;
  const clock = { ...systemClock, elapsed: () => (elapsed += turnMs) };
  const { log, ends, write } = logged({}, clock);
  const all: Promise<unknown>[] = [];
  const writeEachTurn = (left: number): void => {
    if (left > 1) setImmediate(() => writeEachTurn(left - 1));
    all.push(write(`w${left}`));
  };
  writeEachTurn(9);
  await turns();
  expect(log).toEqual([begins]);
  while (ends.length > 0) {
    ends.shift()?.();
    await turns();
  }
  await Promise.all(all);
});

test("writers share a commit up to the octets of its engine, and a larger one has its own", async () => {
  const { log, ends, write } = logged({ octetsPerCommit: 10 });
  const all = ["1234", "1234", "1234", "a larger text", "1234"].map(write);
  await turns();
  while (ends.length > 0) {
    ends.shift()?.();
    await turns();
  }
  await Promise.all(all);
  expect(log.filter((said) => said.startsWith("begins"))).toEqual([
    "begins 2",
    "begins 1",
    "begins 1",
    "begins 1",
  ]);
});
