import { expect, test } from "bun:test";
import { yieldToEventLoop } from "../../../../src/core/concurrency/event-loop.ts";
import { TaskQueue, type TaskTurn } from "../../../../src/wiring/cpu/task-queue.ts";

/** A task that logs its steps. Each step is a turn of work, or a wait. */
function tasks() {
  const row = new TaskQueue();
  const told: string[] = [];
  const task = async (name: string, work: (place: TaskTurn) => Promise<void>): Promise<void> => {
    const place = await row.take();
    told.push(`${name} begins`);
    try {
      await work(place);
    } finally {
      told.push(`${name} ends`);
      place.end();
    }
  };
  return { told, task };
}

const nothing = async (): Promise<void> => undefined;

async function turns(count: number): Promise<void> {
  for (let at = 0; at < count; at++) await yieldToEventLoop();
}

test("tasks run one after another, in the order in which they came", async () => {
  const { told, task } = tasks();
  await Promise.all([task("a", yieldToEventLoop), task("b", nothing), task("c", yieldToEventLoop)]);
  expect(told).toEqual(["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"]);
});

test("if a task fails, the next one begins", async () => {
  const { told, task } = tasks();
  const failing = task("a", () => Promise.reject(new Error("no"))).catch(() => undefined);
  await Promise.all([failing, task("b", nothing)]);
  expect(told).toEqual(["a begins", "a ends", "b begins", "b ends"]);
});

test("a task that waits for something outside lets others run, and continues before new ones begin", async () => {
  const { told, task } = tasks();
  const answer = Promise.withResolvers<string>();
  const waiting = task("a", async ({ waitFor }) => {
    told.push(await waitFor(answer.promise));
  });
  const second = task("b", async () => {
    answer.resolve("answered");
    await yieldToEventLoop();
  });
  await Promise.all([waiting, second, task("c", nothing)]);
  expect(told).toEqual(["a begins", "b begins", "b ends", "answered", "a ends", "c begins", "c ends"]);
});

test("a result that is there at once causes no switch", async () => {
  const { told, task } = tasks();
  const first = task("a", async ({ waitFor }) => {
    for (let at = 0; at < 10; at++) await waitFor(Promise.resolve());
  });
  await Promise.all([first, task("b", nothing)]);
  expect(told).toEqual(["a begins", "a ends", "b begins", "b ends"]);
});

test("a task may wait for several things, and continues once all are there", async () => {
  const { told, task } = tasks();
  const [soon, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const first = task("a", async ({ waitFor }) => {
    await Promise.all([waitFor(soon.promise), waitFor(late.promise)]);
  });
  const second = task("b", async () => {
    soon.resolve();
    await yieldToEventLoop();
    await yieldToEventLoop();
    late.resolve();
    await yieldToEventLoop();
  });
  await Promise.all([first, second, task("c", nothing)]);
  expect(told).toEqual(["a begins", "b begins", "b ends", "a ends", "c begins", "c ends"]);
});

test("a task with parallel steps resumes once, however many of them wait", async () => {
  const { told, task } = tasks();
  const [answer, own] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const first = task("a", async ({ waitFor }) => {
    const another = own.promise.then(() => waitFor(Promise.resolve()));
    await Promise.all([waitFor(answer.promise), another]);
  });
  const second = task("b", async () => {
    answer.resolve();
    await yieldToEventLoop();
    // By now the first half of the other task has finished waiting, and the second will soon.
    own.resolve();
    await yieldToEventLoop();
  });
  const all = Promise.all([first, second, task("c", nothing)]);
  await Promise.race([all, turns(20)]);
  expect(told).toEqual(["a begins", "b begins", "b ends", "a ends", "c begins", "c ends"]);
});

test("a wait that outlasts its task, or that the task abandoned, takes no place", async () => {
  const { told, task } = tasks();
  const slow = Promise.withResolvers<void>();
  await task("a", async ({ waitFor }) => {
    await Promise.race([waitFor(slow.promise), yieldToEventLoop().then(yieldToEventLoop)]);
  });
  slow.resolve();
  await task("b", nothing);
  const slower = Promise.withResolvers<void>();
  await Promise.all([
    task("c", async ({ waitFor }) => {
      await Promise.race([waitFor(slower.promise), yieldToEventLoop().then(yieldToEventLoop)]);
      slower.resolve();
      await yieldToEventLoop();
      await yieldToEventLoop();
    }),
    task("d", yieldToEventLoop),
  ]);
  await task("e", nothing);
  expect(told.filter((one) => one.endsWith("ends"))).toEqual([
    "a ends",
    "b ends",
    "d ends",
    "c ends",
    "e ends",
  ]);
});
