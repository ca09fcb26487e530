import { describe, expect, test } from "bun:test";
import { type JobReport, type LaneLimits, laneOf, Lanes } from "../../../../src/flows/webhooks/push-lanes.ts";
import type { Job } from "../../../../src/queue/port.ts";
import { manualClock } from "../../../support/manual-clock.ts";

const limits: LaneLimits = {
  perLane: 2,
  mostPerLane: 2,
  total: 3,
  slowAfterMs: 2000,
  slowTotal: 8,
  waitingPerLane: 100,
  waiting: 100,
};

/** Lanes whose jobs run until the test ends them. */
function heldLanes(changes: Partial<LaneLimits> = {}) {
  const started: string[] = [];
  const release = new Map<string, (report: JobReport | null) => void>();
  const clock = manualClock();
  const lanes = new Lanes(clock, { ...limits, ...changes }, (job) => {
    started.push(job.key);
    return new Promise<JobReport | null>((resolve) => release.set(job.key, resolve));
  });
  const finish = async (key: string, report: JobReport | null = null) => {
    release.get(key)?.(report);
    await new Promise<void>((resolve) => setImmediate(resolve));
  };
  return { lanes, started, finish, clock };
}

const job = (key: string, lane: string): Job => ({ key, lane });

describe("lanes", () => {
  test("one lane uses no more places than its own", async () => {
    const { lanes, started, finish } = heldLanes();
    for (const key of ["a1", "a2", "a3"]) lanes.offer(job(key, "a"));
    expect(started).toEqual(["a1", "a2"]);
    await finish("a1");
    expect(started).toEqual(["a1", "a2", "a3"]);
  });

  test("a lane that hangs leaves the other lanes their places", async () => {
    const { lanes, started, finish } = heldLanes();
    for (let at = 0; at < 20; at++) lanes.offer(job(`dead${at}`, "dead"));
    for (const key of ["b1", "b2", "b3"]) lanes.offer(job(key, "b"));
    expect(started).toEqual(["dead0", "dead1", "b1"]);
    await finish("b1");
    await finish("b2");
    expect(started).toEqual(["dead0", "dead1", "b1", "b2", "b3"]);
  });

  test("a key is not wanted if it is already there or would not fit", async () => {
    const { lanes, finish } = heldLanes({ perLane: 1, waitingPerLane: 2, waiting: 3 });
    for (const key of ["a1", "a2", "a3"]) lanes.offer(job(key, "a"));
    expect(["a1", "a2", "a4"].map((key) => lanes.wants(job(key, "a")))).toEqual([false, false, false]);
    expect(lanes.wants(job("b1", "b"))).toBe(true);
    for (const key of ["b1", "b2"]) lanes.offer(job(key, "b"));
    expect(lanes.wants(job("c1", "c"))).toBe(false);
    await finish("a1");
    expect(lanes.wants(job("a4", "a"))).toBe(true);
  });

  test("lanes take turns if places are scarce", async () => {
    const { lanes, started, finish } = heldLanes({ perLane: 5, total: 1 });
    for (const key of ["a1", "a2", "a3"]) lanes.offer(job(key, "a"));
    for (const key of ["b1", "b2"]) lanes.offer(job(key, "b"));
    for (const key of ["a1", "a2", "b1", "a3", "b2"]) await finish(key);
    expect(started).toEqual(["a1", "a2", "b1", "a3", "b2"]);
  });

  test("a job that waits or runs is not accepted again, and one that has run is", async () => {
    const { lanes, started, finish } = heldLanes({ perLane: 1 });
    for (const key of ["a1", "a1", "a2", "a2"]) lanes.offer(job(key, "a"));
    await finish("a1");
    await finish("a2");
    expect(started).toEqual(["a1", "a2"]);
    lanes.offer(job("a1", "a"));
    expect(started).toEqual(["a1", "a2", "a1"]);
  });

  test("a job that does not fit is dropped, and can be offered again", async () => {
    const { lanes, started, finish } = heldLanes({ perLane: 1, waitingPerLane: 2, waiting: 3 });
    for (const key of ["a1", "a2", "a3", "a4"]) lanes.offer(job(key, "a"));
    for (const key of ["b1", "b2", "b3"]) lanes.offer(job(key, "b"));
    expect(["a3", "a4", "b2", "b3"].map((key) => lanes.has(key))).toEqual([true, false, true, false]);
    for (const key of ["a1", "a2", "a3"]) await finish(key);
    lanes.offer(job("a4", "a"));
    expect(started).toEqual(["a1", "b1", "a2", "a3", "a4"]);
  });

  test("a lane that hangs does not fill the queue of another", () => {
    const { lanes, started } = heldLanes({ waitingPerLane: 5 });
    for (let at = 0; at < 1000; at++) lanes.offer(job(`dead${at}`, "dead"));
    lanes.offer(job("b1", "b"));
    expect(started).toEqual(["dead0", "dead1", "b1"]);
  });

  test("a job that fails frees its place", async () => {
    const started: string[] = [];
    const lanes = new Lanes(manualClock(), { ...limits, perLane: 1 }, async ({ key }) => {
      started.push(key);
      throw new Error("no");
    });
    lanes.offer(job("a1", "a"));
    lanes.offer(job("a2", "a"));
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(started).toEqual(["a1", "a2"]);
  });

  test("lanes that hang leave the other lanes all places after a moment", async () => {
    const { lanes, started, clock } = heldLanes({ perLane: 1 });
    for (const name of ["w", "x", "y"]) lanes.offer(job(`${name}1`, name));
    for (const name of ["a", "b", "c", "d"]) lanes.offer(job(`${name}1`, name));
    clock.advance(limits.slowAfterMs - 1);
    expect(started).toEqual(["w1", "x1", "y1"]);
    clock.advance(1);
    expect(started).toEqual(["w1", "x1", "y1", "a1", "b1", "c1"]);
  });

  test("slow lanes start jobs in half of their places, take turns, and stay known as slow while empty", async () => {
    const { lanes, started, finish, clock } = heldLanes({ perLane: 1, slowTotal: 4 });
    for (const name of ["w", "x", "y"]) lanes.offer(job(`${name}1`, name));
    clock.advance(limits.slowAfterMs);
    for (const name of ["w", "x", "y"]) await finish(`${name}1`);
    for (const name of ["w", "x", "y"]) lanes.offer(job(`${name}2`, name));
    lanes.offer(job("w3", "w"));
    expect(started.slice(3)).toEqual(["w2", "x2"]);
    clock.advance(limits.slowAfterMs);
    await finish("w2");
    await finish("x2");
    expect(started.slice(5)).toEqual(["y2", "w3"]);
  });

  test("that turn slow keep the places of their jobs if slow lanes have none left", async () => {
    const { lanes, started, clock } = heldLanes({ perLane: 1, slowTotal: 2 });
    for (const name of ["w", "x", "y", "a", "b", "c"]) lanes.offer(job(`${name}1`, name));
    clock.advance(limits.slowAfterMs);
    expect(started).toEqual(["w1", "x1", "y1", "a1", "b1"]);
  });

  test("a slow lane counts as quick again after one quick job", async () => {
    const { lanes, started, finish, clock } = heldLanes({ perLane: 1, slowTotal: 2 });
    lanes.offer(job("w1", "w"));
    clock.advance(limits.slowAfterMs);
    await finish("w1");
    lanes.offer(job("w2", "w"));
    await finish("w2");
    lanes.offer(job("x1", "x"));
    clock.advance(limits.slowAfterMs);
    // The only place in which slow lanes start is in use.
    lanes.offer(job("w3", "w"));
    expect(started).toEqual(["w1", "w2", "x1", "w3"]);
  });

  test("lanes whose jobs hang leave the other lanes all places, even if one of their jobs is quick at times", async () => {
    const { lanes, started, finish, clock } = heldLanes({ perLane: 2, total: 3, slowTotal: 8 });
    for (const key of ["w1", "w2", "w3"]) lanes.offer(job(key, "w"));
    clock.advance(limits.slowAfterMs);
    await finish("w1");
    expect(started).toEqual(["w1", "w2", "w3"]);
    await finish("w3");
    lanes.offer(job("w4", "w"));
    for (const key of ["a1", "a2"]) lanes.offer(job(key, "a"));
    lanes.offer(job("b1", "b"));
    expect(started.slice(3)).toEqual(["w4", "a1", "a2", "b1"]);
    for (const key of ["w2", "w4"]) await finish(key);
    lanes.offer(job("w5", "w"));
    expect(started).not.toContain("w5");
    await finish("a1");
    expect(started).toContain("w5");
  });

  test("a lane runs more and more jobs while its endpoint answers well, and half as many if it fails", async () => {
    const { lanes, started, finish } = heldLanes({ total: 100, mostPerLane: 8 });
    const [well, badly] = [true, false].map((answer) => ({ well: answer, ms: 100 })) as [
      JobReport,
      JobReport,
    ];
    for (let at = 1; at <= 100; at++) lanes.offer(job(`a${at}`, laneOf("p", "a")));
    expect(started.length).toBe(2);
    for (let at = 1; at <= 6; at++) await finish(`a${at}`, well);
    expect(started.length - 6).toBe(8);
    for (let at = 7; at <= 14; at++) await finish(`a${at}`, badly);
    expect(started.length - 14).toBe(4);
  });

  test("a lane that has grown and then hangs begins few jobs", async () => {
    const { lanes, started, finish, clock } = heldLanes({ total: 100, mostPerLane: 8, slowTotal: 40 });
    for (let at = 1; at <= 100; at++) lanes.offer(job(`a${at}`, "a"));
    for (let at = 1; at <= 6; at++) await finish(`a${at}`, { well: true, ms: 100 });
    clock.advance(limits.slowAfterMs);
    for (let at = 7; at <= 13; at++) await finish(`a${at}`);
    expect(started.length - 13).toBe(2);
  });

  test("a close waits for running jobs and forgets waiting ones", async () => {
    const { lanes, started, finish } = heldLanes({ perLane: 1 });
    lanes.offer(job("a1", "a"));
    lanes.offer(job("a2", "a"));
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
