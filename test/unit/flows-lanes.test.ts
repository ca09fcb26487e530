import { describe, expect, test } from "bun:test";
import { type LaneLimits, Lanes } from "../../src/flows/lanes.ts";
import type { Job } from "../../src/queue/port.ts";

const limits: LaneLimits = { perLane: 2, total: 3, waiting: 4 };

/** Lanes whose jobs run until the test lets them go. */
function heldLanes(changes: Partial<LaneLimits> = {}) {
  const started: string[] = [];
  const release = new Map<string, () => void>();
  const lanes = new Lanes({ ...limits, ...changes }, (job) => {
    started.push(job.key);
    return new Promise<void>((resolve) => release.set(job.key, resolve));
  });
  const finish = async (key: string) => {
    release.get(key)?.();
    await new Promise<void>((resolve) => setImmediate(resolve));
  };
  return { lanes, started, finish };
}

const job = (key: string, lane: string): Job => ({ key, lane });

describe("lanes", () => {
  test("one lane holds no more places than its own", async () => {
    const { lanes, started, finish } = heldLanes();
    for (const key of ["a1", "a2", "a3"]) await lanes.offer(job(key, "a"));
    expect(started).toEqual(["a1", "a2"]);
    await finish("a1");
    expect(started).toEqual(["a1", "a2", "a3"]);
  });

  test("a lane that hangs leaves the others their places", async () => {
    const { lanes, started, finish } = heldLanes({ waiting: 100 });
    for (let at = 0; at < 20; at++) await lanes.offer(job(`dead${at}`, "dead"));
    for (const key of ["b1", "b2", "b3"]) await lanes.offer(job(key, "b"));
    expect(started).toEqual(["dead0", "dead1", "b1"]);
    await finish("b1");
    await finish("b2");
    expect(started).toEqual(["dead0", "dead1", "b1", "b2", "b3"]);
  });

  test("lanes take turns where places are few", async () => {
    const { lanes, started, finish } = heldLanes({ perLane: 5, total: 1, waiting: 100 });
    for (const key of ["a1", "a2", "a3"]) await lanes.offer(job(key, "a"));
    for (const key of ["b1", "b2"]) await lanes.offer(job(key, "b"));
    for (const key of ["a1", "a2", "b1", "a3", "b2"]) await finish(key);
    expect(started).toEqual(["a1", "a2", "b1", "a3", "b2"]);
  });

  test("a job that waits or runs is not taken again, one that has run is", async () => {
    const { lanes, started, finish } = heldLanes({ perLane: 1 });
    for (const key of ["a1", "a1", "a2", "a2"]) await lanes.offer(job(key, "a"));
    await finish("a1");
    await finish("a2");
    expect(started).toEqual(["a1", "a2"]);
    await lanes.offer(job("a1", "a"));
    expect(started).toEqual(["a1", "a2", "a1"]);
  });

  test("over the limit of waiting jobs an offer waits for room", async () => {
    const { lanes, finish } = heldLanes({ perLane: 1, total: 1, waiting: 2 });
    for (const key of ["a1", "a2", "a3"]) await lanes.offer(job(key, "a"));
    let taken = false;
    const fourth = lanes.offer(job("a4", "a")).then(() => {
      taken = true;
    });
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(taken).toBe(false);
    await finish("a1");
    await fourth;
    expect(taken).toBe(true);
  });

  test("a job that fails frees its place", async () => {
    const started: string[] = [];
    const lanes = new Lanes({ ...limits, perLane: 1 }, async ({ key }) => {
      started.push(key);
      throw new Error("no");
    });
    await lanes.offer(job("a1", "a"));
    await lanes.offer(job("a2", "a"));
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(started).toEqual(["a1", "a2"]);
  });

  test("a close waits for what runs and forgets what waits", async () => {
    const { lanes, started, finish } = heldLanes({ perLane: 1 });
    await lanes.offer(job("a1", "a"));
    await lanes.offer(job("a2", "a"));
    let closed = false;
    const closing = lanes.close().then(() => {
      closed = true;
    });
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(closed).toBe(false);
    await finish("a1");
    await closing;
    expect(started).toEqual(["a1"]);
  });
});
