import { describe, expect, test } from "bun:test";
import { LanePace } from "../../../../src/flows/webhooks/lane-pace.ts";

interface Lane {
  name: string;
  project: string;
  running: number;
}

const lane = (name: string): Lane => ({ name, project: name.slice(0, 1), running: 0 });

/** Begins jobs of lanes that always have one more, until no lane may begin one. Returns the lanes in order. */
function fill(pace: LanePace<Lane>, lanes: readonly Lane[], most = Number.POSITIVE_INFINITY): string[] {
  for (const one of lanes) pace.add(one);
  const begun: string[] = [];
  for (let next = pace.next(); next !== null && begun.length < most; next = pace.next()) {
    next.running++;
    pace.count(next, 1);
    pace.add(next);
    begun.push(next.name);
  }
  return begun;
}

describe("lanes of one pace", () => {
  test("lanes of one pace take turns, and so do their projects, however many lanes each has", () => {
    const begun = fill(new LanePace<Lane>(100, 4), ["a1", "a2", "a3", "b1"].map(lane), 6);
    expect(begun).toEqual(["a1", "b1", "a2", "b1", "a3", "b1"]);
  });

  test("one project's lanes leave as many places free as they take", () => {
    const pace = new LanePace<Lane>(100, 4);
    const many = Array.from({ length: 600 }, (_, at) => lane(`a${at}`));
    expect(fill(pace, many).length).toBe(50);
    expect(fill(pace, [lane("b1")]).length).toBe(17);
  });

  test("lanes that have grown leave places for the other lanes of their project", () => {
    const pace = new LanePace<Lane>(90, 4);
    expect(fill(pace, [lane("a1")]).length).toBe(30);
    const others = Array.from({ length: 10 }, (_, at) => lane(`a${at + 2}`));
    const begun = fill(pace, others);
    expect(begun.length).toBe(15);
    expect(begun).not.toContain("a1");
  });

  test("lanes of one pace give back their places with their jobs", () => {
    const pace = new LanePace<Lane>(4, 4);
    const one = lane("a1");
    expect(fill(pace, [one]).length).toBe(2);
    pace.remove(one);
    pace.count(one, -2);
    expect([pace.running, pace.next()]).toEqual([0, null]);
  });
});
