import { expect, test } from "bun:test";
import { yieldToEventLoop } from "../../../../src/core/concurrency/event-loop.ts";
import { MAX_WAIT_MS, RightOfWay } from "../../../../src/core/concurrency/right-of-way.ts";
import { manualClock } from "../../../support/manual-clock.ts";

function ground() {
  const clock = manualClock();
  const way = new RightOfWay(clock);
  const steps: string[] = [];
  const bulk = (name: string) => way.run(true, async () => void steps.push(name));
  return { clock, way, steps, bulk };
}

async function ticks(): Promise<void> {
  for (let tick = 0; tick < 5; tick++) await yieldToEventLoop();
}

test("bulk steps go on one in each tick of the event loop", async () => {
  const { steps, bulk } = ground();
  const both = [bulk("a"), bulk("b")];
  await both[0];
  expect(steps).toEqual(["a"]);
  await both[1];
  expect(steps).toEqual(["a", "b"]);
});

test("bulk steps wait until all urgent work has ended", async () => {
  const { way, steps, bulk } = ground();
  const request = Promise.withResolvers<void>();
  const running = way.first(() => request.promise);
  const both = [bulk("a"), bulk("b")];
  await way.run(false, async (work) => {
    // A second begin counts nothing twice, and neither does a second end.
    await work.begin();
    work.end();
  });
  await ticks();
  expect(steps).toEqual([]);
  request.reject(new Error("refused"));
  await running.catch(() => undefined);
  await Promise.all(both);
  expect(steps).toEqual(["a", "b"]);
});

test("each bulk step waits no longer than the maximum for urgent work that does not end", async () => {
  const { clock, way, steps, bulk } = ground();
  void way.first(() => new Promise(() => undefined));
  const both = [bulk("a"), bulk("b")];
  await clock.armed(MAX_WAIT_MS);
  clock.advance(MAX_WAIT_MS - 1);
  await ticks();
  expect(steps).toEqual([]);
  clock.advance(1);
  await ticks();
  expect(steps).toEqual(["a"]);
  clock.advance(MAX_WAIT_MS);
  await Promise.all(both);
});
