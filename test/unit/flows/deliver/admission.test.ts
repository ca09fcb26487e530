import { beforeEach, describe, expect, test } from "bun:test";
import type { AdmissionLimits, Release } from "../../../../src/core/concurrency/admission.ts";
import { DEMAND_KEPT_MS, JobAdmission, RENDERING_LIMITS } from "../../../../src/flows/deliver/admission.ts";
import { type ManualClock, manualClock } from "../../../support/manual-clock.ts";

const { total: TOTAL, perOwner: PER_PROJECT, maxWaiting: MAX_WAITING } = RENDERING_LIMITS;

let clock: ManualClock;
let jobs: JobAdmission;
let keys = 0;
beforeEach(() => {
  clock = manualClock();
  jobs = new JobAdmission(clock, RENDERING_LIMITS);
});

const newKey = (): string => `job${keys++}`;
const one = (owner: string) => ({ owner, weight: 1 });

/** Enters jobs of a project until one would have to wait. Returns what gives their claims back. */
function enterAll(owner: string): Release[] {
  const entered: Release[] = [];
  const next = () => jobs.tryEnter(newKey(), one(owner));
  for (let release = next(); release !== null; release = next()) entered.push(release);
  return entered;
}

/** A job that waits, and enters when it comes again. */
function waitingJob(owner: string): { calls: number; release: Release | null } {
  const own: { calls: number; release: Release | null } = { calls: 0, release: null };
  const key = newKey();
  const wait = (): void =>
    void jobs.wait(key, one(owner))?.then(() => {
      own.calls++;
      own.release = jobs.tryEnter(key, one(owner));
      if (own.release === null) wait();
    });
  wait();
  return own;
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("jobs that render a template", () => {
  test("rendering jobs of one project are admitted up to its limit, and each gives back its claim once", () => {
    const entered = enterAll("snd_a");
    expect(entered).toHaveLength(PER_PROJECT);
    entered[0]?.();
    entered[0]?.();
    expect(enterAll("snd_a")).toHaveLength(1);
  });

  test("rendering jobs of several projects are admitted up to the total", () => {
    const projects = Array.from({ length: TOTAL / PER_PROJECT + 1 }, (_, nth) => `snd_${nth}`);
    expect(projects.map((id) => enterAll(id).length)).toEqual([
      ...Array(TOTAL / PER_PROJECT).fill(PER_PROJECT),
      0,
    ]);
  });

  test("waiting rendering jobs are admitted in their order, one for each claim given back", async () => {
    const entered = enterAll("snd_a");
    const waiting = Array.from({ length: 5 }, () => waitingJob("snd_a"));
    for (const release of entered.slice(0, 2)) release();
    await settled();
    expect(waiting.map(({ calls }) => calls)).toEqual([1, 1, 0, 0, 0]);
    expect(waiting.filter(({ release }) => release !== null)).toHaveLength(2);
  });

  test("rendering jobs of the project that holds least are admitted first", async () => {
    const all = Array.from({ length: TOTAL / PER_PROJECT }, (_, nth) => enterAll(`snd_${nth}`));
    const own = waitingJob("snd_0");
    const other = waitingJob("snd_new");
    all[0]?.[0]?.();
    await settled();
    expect([own.calls, other.calls]).toEqual([0, 1]);
    other.release?.();
    await settled();
    expect(own.calls).toBe(1);
  });

  test("rendering jobs that do not come again give their claims to the next ones", async () => {
    const entered = enterAll("snd_a");
    // These never come again: their messages were canceled.
    const lost = Array.from({ length: PER_PROJECT }, () => jobs.wait(newKey(), one("snd_a")));
    const waiting = Array.from({ length: 3 }, () => waitingJob("snd_a"));
    for (const release of entered) release();
    await Promise.all(lost);
    expect(waiting.map(({ calls }) => calls)).toEqual([0, 0, 0]);
    clock.advance(DEMAND_KEPT_MS);
    await settled();
    expect(waiting.map(({ calls }) => calls)).toEqual([1, 1, 1]);
  });

  test("jobs that render a template may wait up to a limit, of which one project gets half", () => {
    enterAll("snd_a");
    let waiting = 0;
    while (jobs.wait(newKey(), one("snd_a")) !== null) waiting++;
    expect(waiting).toBe(MAX_WAITING / 2);
    expect(jobs.wait(newKey(), one("snd_b"))).not.toBeNull();
  });
});

describe("jobs admitted by weight", () => {
  const limits: AdmissionLimits = { total: 100, perOwner: Infinity, maxWaiting: 100 };
  beforeEach(() => {
    jobs = new JobAdmission(clock, limits);
  });

  const enter = (owner: string, key: string, weight: number) => jobs.tryEnter(key, { owner, weight });

  /** Returns whether the wait of a job is over. */
  function wait(owner: string, key: string, weight: number, part = ""): { called: boolean } {
    const own = { called: false };
    void jobs.wait(key, { owner, part, weight })?.then(() => {
      own.called = true;
    });
    return own;
  }

  test("a heavy job that waits is admitted before light ones that come later, of any project", async () => {
    const releases = [enter("snd_a", "a1", 50), enter("snd_a", "a2", 40)];
    expect([enter("snd_b", "heavy", 60), jobs.lacking]).toEqual([null, 0]);
    const heavy = wait("snd_b", "heavy", 60);
    expect(jobs.lacking).toBe(50);
    expect([enter("snd_c", "light", 1), enter("snd_a", "a3", 1)]).toEqual([null, null]);
    const light = wait("snd_c", "light", 1);
    releases[1]?.();
    await settled();
    expect([heavy.called, light.called, jobs.lacking]).toEqual([false, false, 10]);
    releases[0]?.();
    await settled();
    expect([heavy.called, light.called, jobs.lacking]).toEqual([true, true, 0]);
    // Their claims are kept for them: no other project gets the weight.
    expect(enter("snd_d", "other", 40)).toBeNull();
    expect([enter("snd_b", "heavy", 60), enter("snd_c", "light", 1)]).not.toContain(null);
    expect(enter("snd_d", "other", 39)).not.toBeNull();
  });

  test("a claim kept for a job that does not come is given to the next one", async () => {
    const release = enter("snd_a", "a", 100);
    const lost = wait("snd_b", "lost", 100);
    const next = wait("snd_c", "next", 100);
    release?.();
    await settled();
    expect([lost.called, next.called]).toEqual([true, false]);
    clock.advance(DEMAND_KEPT_MS);
    await settled();
    expect(next.called).toBe(true);
    // A job that comes late waits again.
    expect(enter("snd_b", "lost", 100)).toBeNull();
    enter("snd_c", "next", 100)?.();
    expect(enter("snd_b", "lost", 100)).not.toBeNull();
  });

  test("the domain of a project that holds least is next, however many jobs of another domain wait", async () => {
    const slowClaim = { owner: "snd_a", part: "slow", weight: 50 };
    const releases = [jobs.tryEnter("slow1", slowClaim), jobs.tryEnter("slow2", slowClaim)];
    const slow = [3, 4, 5].map((nth) => wait("snd_a", `slow${nth}`, 50, "slow"));
    const other = wait("snd_a", "other", 50, "other");
    releases[0]?.();
    await settled();
    expect([other.called, ...slow.map(({ called }) => called)]).toEqual([true, false, false, false]);
    releases[1]?.();
    await settled();
    expect(slow.map(({ called }) => called)).toEqual([true, false, false]);
  });

  test("no claim and no timer is left when all jobs are over", async () => {
    for (let round = 0; round < 50; round++) {
      const releases = [70, 30].map((weight, at) => enter(`snd_${at}`, `${round}.${at}`, weight));
      const waiting = [10, 90, 60].map((weight, at) => wait(`snd_w${at}`, `${round}.w${at}`, weight));
      for (const release of releases) release?.();
      for (let look = 0; look < 5; look++) {
        await settled();
        clock.advance(DEMAND_KEPT_MS);
      }
      expect(waiting.map(({ called }) => called)).toEqual([true, true, true]);
    }
    expect([jobs.lacking, clock.pending()]).toEqual([0, 0]);
    expect(enter("snd_z", "all", 100)).not.toBeNull();
  });
});

test("each job is admitted in the end, whatever comes between", async () => {
  const projects = ["snd_a", "snd_b", "snd_c"];
  let over = 0;
  const started: Promise<void>[] = [];
  const job = async (owner: string, nth: number): Promise<void> => {
    for (;;) {
      const release = jobs.tryEnter(`job${nth}`, one(owner));
      if (release !== null) {
        for (let turns = 0; turns <= nth % 4; turns++) await settled();
        release();
        over++;
        return;
      }
      await jobs.wait(`job${nth}`, one(owner));
      // One in five is canceled while it waits.
      if (nth % 5 === 0) return;
      for (let turns = 0; turns < nth % 3; turns++) await settled();
    }
  };
  for (let nth = 0; nth < 300; nth++) started.push(job(projects[nth % 3] ?? "", nth));
  const all = Promise.all(started);
  let ended = false;
  void all.then(() => {
    ended = true;
  });
  for (let looks = 0; looks < 1000 && !ended; looks++) {
    await settled();
    clock.advance(DEMAND_KEPT_MS / 10);
  }
  expect(ended).toBe(true);
  expect(over).toBeGreaterThanOrEqual(240);
  clock.advance(DEMAND_KEPT_MS);
  expect(enterAll("snd_d")).toHaveLength(PER_PROJECT);
});
