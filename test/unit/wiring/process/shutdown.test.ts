import { expect, test } from "bun:test";
import { runShutdownSteps } from "../../../../src/wiring/process/shutdown.ts";

test("an ending runs every step in order even if some fail, and then throws the first error", async () => {
  const done: string[] = [];
  const end = (name: string) => async () => {
    await Promise.resolve();
    done.push(name);
  };
  const failing = (name: string) => () => {
    done.push(name);
    throw new Error(`${name} failed`);
  };
  const rejecting = (name: string) => async () => {
    await Promise.resolve();
    failing(name)();
  };
  const ending = runShutdownSteps([
    [end("http"), rejecting("queue"), failing("listener")],
    [failing("pool")],
    [end("database")],
  ]);
  await expect(ending).rejects.toThrow("listener failed");
  expect(done).toEqual(["listener", "http", "queue", "pool", "database"]);
});

test("an ending waits for all of a step before the next", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const done: string[] = [];
  const ending = runShutdownSteps([[() => promise, () => done.push("other")], [() => done.push("database")]]);
  await new Promise((turn) => setImmediate(turn));
  expect(done).toEqual(["other"]);
  resolve();
  await ending;
  expect(done).toEqual(["other", "database"]);
});
