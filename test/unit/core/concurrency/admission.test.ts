import { expect, test } from "bun:test";
import {
  Admission,
  type AdmissionLimits,
  createTaskLimit,
  type Release,
} from "../../../../src/core/concurrency/admission.ts";
import { chanceOf } from "../../../support/chance.ts";

const ample: AdmissionLimits = { total: 100, perOwner: 100, maxWaiting: 100 };

/** Enters claims of one weight in their order and notes the order in which they are admitted. */
function queueOf(admission: Admission) {
  const admitted: string[] = [];
  const releases = new Map<string, Release>();
  return {
    admitted,
    async enter(name: string, weight = 1, signal?: AbortSignal): Promise<void> {
      const waits = admission.enter({ owner: name.slice(0, 1), weight }, signal);
      if (waits === null) throw new Error("refused");
      releases.set(name, await waits);
      admitted.push(name);
    },
    async release(name: string): Promise<void> {
      releases.get(name)?.();
      await Promise.resolve();
      await Promise.resolve();
    },
  };
}

test("claims are admitted up to the total and up to the limit of their owner", () => {
  const admission = new Admission({ ...ample, total: 10, perOwner: 6 });
  expect(admission.tryEnter({ owner: "a", weight: 6 })).not.toBeNull();
  expect(admission.tryEnter({ owner: "a", weight: 1 })).toBeNull();
  expect(admission.tryEnter({ owner: "b", weight: 5 })).toBeNull();
  expect(admission.tryEnter({ owner: "b", weight: 4 })).not.toBeNull();
  expect(admission.tryEnter({ owner: "c", weight: 1 })).toBeNull();
  expect(admission.held).toBe(10);
});

test("a claim heavier than the limits is admitted alone", () => {
  const admission = new Admission({ ...ample, total: 10, perOwner: 6 });
  const release = admission.tryEnter({ owner: "a", weight: 24 });
  expect(release).not.toBeNull();
  expect(admission.tryEnter({ owner: "b", weight: 1 })).toBeNull();
  release?.();
  release?.();
  expect(admission.held).toBe(0);
  expect(admission.tryEnter({ owner: "b", weight: 1 })).not.toBeNull();
});

test("the owner that holds least is next, and one owner's claims keep their order", async () => {
  const admission = new Admission({ ...ample, total: 3 });
  const queue = queueOf(admission);
  for (const name of ["a1", "a2", "b1", "a3", "a4", "b2", "c1"]) void queue.enter(name);
  await queue.release("");
  expect(queue.admitted).toEqual(["a1", "a2", "b1"]);
  await queue.release("a1");
  expect(queue.admitted.at(-1)).toBe("c1");
  for (const name of ["a2", "b1", "c1"]) await queue.release(name);
  expect(queue.admitted.slice(4)).toEqual(["a3", "b2", "a4"]);
});

test("owners that hold as little take turns, however many claims each has", async () => {
  const admission = new Admission({ ...ample, total: 1 });
  const queue = queueOf(admission);
  const names = ["a1", "a2", "a3", "b1", "b2"];
  for (const name of names) void queue.enter(name);
  await queue.release("");
  for (const name of ["a1", "a2", "b1", "a3", "b2"]) await queue.release(name);
  expect(queue.admitted).toEqual(["a1", "a2", "b1", "a3", "b2"]);
});

test("light claims do not starve a heavy one, but an owner that holds nothing goes before it", async () => {
  const admission = new Admission({ ...ample, total: 10 });
  const queue = queueOf(admission);
  void queue.enter("a1", 5);
  void queue.enter("a2", 8);
  void queue.enter("a3", 1);
  void queue.enter("b1", 2);
  await queue.release("");
  expect(queue.admitted).toEqual(["a1", "b1"]);
  expect(admission.tryEnter({ owner: "b", weight: 1 })).not.toBeNull();
  await queue.release("a1");
  expect(queue.admitted).toEqual(["a1", "b1"]);
  await queue.release("b1");
  expect(queue.admitted).toEqual(["a1", "b1", "a2", "a3"]);
});

test("one owner has at most as many waiting claims as places are left", () => {
  const admission = new Admission({ total: 1, perOwner: 1, maxWaiting: 4 });
  expect(admission.tryEnter({ owner: "a", weight: 1 })).not.toBeNull();
  for (const owner of ["a", "a"]) expect(admission.enter({ owner, weight: 1 })).not.toBeNull();
  expect(admission.enter({ owner: "a", weight: 1 })).toBeNull();
  expect(admission.enter({ owner: "b", weight: 1 })).not.toBeNull();
  expect(admission.enter({ owner: "c", weight: 1 })).not.toBeNull();
  expect(admission.enter({ owner: "d", weight: 1 })).toBeNull();
  expect(admission.waiting).toBe(4);
});

test("a claim whose wait is given up leaves its place to others", async () => {
  const admission = new Admission({ ...ample, total: 10 });
  const queue = queueOf(admission);
  const [early, late] = [new AbortController(), new AbortController()];
  void queue.enter("a1", 6);
  const heavy = queue.enter("a2", 9, early.signal);
  void queue.enter("a3", 4, late.signal);
  early.abort(new Error("gone"));
  await expect(heavy).rejects.toThrow("gone");
  expect(queue.admitted).toEqual(["a1", "a3"]);
  late.abort(new Error("too late to count"));
  expect(admission.held).toBe(10);
  await expect(admission.enter({ owner: "b", weight: 1 }, early.signal)).rejects.toThrow("gone");
  expect(admission.waiting).toBe(0);
});

test("a claim that turns out lighter gives back what it does not need, once", () => {
  const admission = new Admission({ ...ample, total: 10 });
  const release = admission.tryEnter({ owner: "a", weight: 8 });
  release?.(3);
  expect(admission.held).toBe(3);
  release?.(5);
  expect(admission.held).toBe(3);
  expect(admission.tryEnter({ owner: "b", weight: 7 })).not.toBeNull();
  release?.();
  release?.();
  expect(admission.held).toBe(7);
});

interface Held {
  owner: string;
  weight: number;
  release: Release;
}

/** Makes random claims, abandoned waits and releases. Returns the rules that were broken. */
async function play(seed: number): Promise<string[]> {
  const chance = chanceOf(seed);
  const faults = new Set<string>();
  const limits = {
    total: 5 + chance.below(20),
    perOwner: 2 + chance.below(10),
    maxWaiting: chance.below(15),
  };
  const admission = new Admission(limits);
  const held: Held[] = [];
  const waits = new Map<number, { owner: string; part: string; giveUp: AbortController }>();
  const sum = (owner?: string): number =>
    held.reduce((all, one) => all + (owner === undefined || one.owner === owner ? one.weight : 0), 0);
  const isAlone = (owner?: string): boolean =>
    held.filter((one) => owner === undefined || one.owner === owner).length === 1;
  const parts = 1 + chance.below(3);
  let claims = 0;

  const enter = (): void => {
    const [id, owner, weight] = [claims++, `o${chance.below(5)}`, 1 + chance.below(8)];
    const part = `p${chance.below(parts)}`;
    const giveUp = new AbortController();
    const wait = admission.enter({ owner, part, weight }, giveUp.signal);
    if (wait === null) return;
    waits.set(id, { owner, part, giveUp });
    const admitted = (release: Release): void => {
      const older = [...waits].find(([other, one]) => other < id && one.owner === owner && one.part === part);
      if (older !== undefined) faults.add(`claim ${id} overtook ${older[0]} of its part`);
      waits.delete(id);
      held.push({ owner, weight, release });
      if (sum() > limits.total && !isAlone()) faults.add(`${sum()} of ${limits.total} are held`);
      if (sum(owner) > limits.perOwner && !isAlone(owner)) faults.add(`an owner holds ${sum(owner)}`);
    };
    wait.then(admitted, () => waits.delete(id));
  };
  const release = (): void => {
    const [one] = held.splice(chance.below(held.length), 1);
    if (one === undefined) return;
    const rest = chance.happens(0.3) ? chance.below(one.weight) : 0;
    one.release(rest);
    if (chance.happens(0.2)) one.release(rest);
    if (rest > 0) held.push({ ...one, weight: rest });
  };
  const giveUp = (): void => [...waits.values()][chance.below(waits.size)]?.giveUp.abort();

  for (let step = 0; step < 200; step++) {
    chance.pick([enter, enter, release, giveUp])();
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (admission.held !== sum()) faults.add(`held is ${admission.held}, not ${sum()}`);
    if (admission.waiting !== waits.size) faults.add(`waiting is ${admission.waiting}, not ${waits.size}`);
    if (waits.size > 0 && held.length === 0) faults.add("claims wait and nothing is held");
    if (waits.size > limits.maxWaiting) faults.add(`${waits.size} claims wait`);
  }
  while (held.length > 0) {
    release();
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  if (admission.held + admission.waiting + waits.size > 0) faults.add("something is left at the end");
  return [...faults];
}

test("300 random runs: no limit is broken, no order, and each claim is admitted in the end", async () => {
  const failed: string[] = [];
  for (let seed = 1; seed <= 300 && failed.length < 10; seed++) {
    const faults = await play(seed);
    if (faults.length > 0) failed.push(`seed ${seed}: ${faults.slice(0, 3).join("; ")}`);
  }
  expect(failed).toEqual([]);
});

test("the part of an owner that holds least is next, and parts that hold as little take turns", async () => {
  const admission = new Admission({ ...ample, total: 2 });
  const admitted: string[] = [];
  const releases: Release[] = [];
  for (const name of ["x1", "x2", "x3", "x4", "y1", "y2", "z1"])
    void admission.enter({ owner: "a", part: name.slice(0, 1), weight: 1 })?.then((release) => {
      admitted.push(name);
      releases.push(release);
    });
  for (let at = 0; at < 7; at++) {
    await Promise.resolve();
    releases[at]?.();
  }
  expect(admitted).toEqual(["x1", "x2", "y1", "x3", "z1", "y2", "x4"]);
});

test("what is lacking is the weight to give back before the next claim is admitted", () => {
  const admission = new Admission({ ...ample, total: 10, perOwner: 8 });
  const release = admission.tryEnter({ owner: "a", weight: 8 });
  void admission.enter({ owner: "a", weight: 1 });
  expect(admission.lacking).toBe(0);
  void admission.enter({ owner: "b", weight: 5 });
  expect(admission.lacking).toBe(3);
  release?.();
  expect(admission.lacking).toBe(0);
});

test("a task limit runs its number of tasks at once in their order, and refuses one more than may wait", async () => {
  const limit = createTaskLimit(2, 3);
  const begun: number[] = [];
  const ends = Array.from({ length: 6 }, () => Promise.withResolvers<void>());
  const runs = ends.map(({ promise }, at) =>
    limit(async () => {
      begun.push(at);
      await promise;
      return at;
    }),
  );
  expect(await runs[5]).toBeNull();
  expect(begun).toEqual([0, 1]);
  ends[1]?.resolve();
  await runs[1];
  for (const { resolve } of ends) resolve();
  expect(await Promise.all(runs)).toEqual([0, 1, 2, 3, 4, null]);
  expect(begun).toEqual([0, 1, 2, 3, 4]);
});

test("a task that fails gives back its place", async () => {
  const limit = createTaskLimit(1, 1);
  await limit(() => Promise.reject(new Error("no"))).catch(() => undefined);
  expect(await limit(async () => "next")).toBe("next");
});
