import { expect, test } from "bun:test";
import { turn } from "../../src/core/turn.ts";
import { OneAtWork, type Place } from "../../src/wiring/threads/one-at-work.ts";

/** A task that tells of its steps; each is a turn of work, or something it waits for. */
function tasks() {
  const row = new OneAtWork();
  const told: string[] = [];
  const task = async (name: string, work: (place: Place) => Promise<void>): Promise<void> => {
    const place = await row.take();
    told.push(`${name} begins`);
    try {
      await work(place);
    } finally {
      told.push(`${name} ends`);
      place.leave();
    }
  };
  return { told, task };
}

const nothing = async (): Promise<void> => undefined;

async function turns(count: number): Promise<void> {
  for (let at = 0; at < count; at++) await turn();
}

test("tasks are worked on one after another, in the order in which they came", async () => {
  const { told, task } = tasks();
  await Promise.all([task("a", turn), task("b", nothing), task("c", turn)]);
  expect(told).toEqual(["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"]);
});

test("a task that has failed lets the next one begin", async () => {
  const { told, task } = tasks();
  const failing = task("a", () => Promise.reject(new Error("no"))).catch(() => undefined);
  await Promise.all([failing, task("b", nothing)]);
  expect(told).toEqual(["a begins", "a ends", "b begins", "b ends"]);
});

test("what waits for something outside lets others go on, and comes before those that have not begun", async () => {
  const { told, task } = tasks();
  const answer = Promise.withResolvers<string>();
  const waiting = task("a", async ({ during }) => {
    told.push(await during(answer.promise));
  });
  const second = task("b", async () => {
    answer.resolve("answered");
    await turn();
  });
  await Promise.all([waiting, second, task("c", nothing)]);
  expect(told).toEqual(["a begins", "b begins", "b ends", "answered", "a ends", "c begins", "c ends"]);
});

test("what is there at once is not stepped aside for", async () => {
  const { told, task } = tasks();
  const first = task("a", async ({ during }) => {
    for (let at = 0; at < 10; at++) await during(Promise.resolve());
  });
  await Promise.all([first, task("b", nothing)]);
  expect(told).toEqual(["a begins", "a ends", "b begins", "b ends"]);
});

test("a task may wait for several things, and be back once all are there", async () => {
  const { told, task } = tasks();
  const [soon, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const first = task("a", async ({ during }) => {
    await Promise.all([during(soon.promise), during(late.promise)]);
  });
  const second = task("b", async () => {
    soon.resolve();
    await turn();
    await turn();
    late.resolve();
    await turn();
  });
  await Promise.all([first, second, task("c", nothing)]);
  expect(told).toEqual(["a begins", "b begins", "b ends", "a ends", "c begins", "c ends"]);
});

test("what a task does side by side comes back once, however much of it waits to", async () => {
  const { told, task } = tasks();
  const [answer, own] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const first = task("a", async ({ during }) => {
    const another = own.promise.then(() => during(Promise.resolve()));
    await Promise.all([during(answer.promise), another]);
  });
  const second = task("b", async () => {
    answer.resolve();
    await turn();
    // The first half of the other task wants to come back by now, and so will the second.
    own.resolve();
    await turn();
  });
  const all = Promise.all([first, second, task("c", nothing)]);
  await Promise.race([all, turns(20)]);
  expect(told).toEqual(["a begins", "b begins", "b ends", "a ends", "c begins", "c ends"]);
});

test("what is waited for in vain takes no place once the task has ended, or has gone on without it", async () => {
  const { told, task } = tasks();
  const slow = Promise.withResolvers<void>();
  await task("a", async ({ during }) => {
    await Promise.race([during(slow.promise), turn().then(turn)]);
  });
  slow.resolve();
  await task("b", nothing);
  const slower = Promise.withResolvers<void>();
  await Promise.all([
    task("c", async ({ during }) => {
      await Promise.race([during(slower.promise), turn().then(turn)]);
      slower.resolve();
      await turn();
      await turn();
    }),
    task("d", turn),
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
