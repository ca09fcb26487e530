import { beforeEach, describe, expect, test } from "bun:test";
import {
  LOOK_MS,
  MAX_OUTSIDE,
  RenderingSeats,
  SEATS,
  SEATS_OF_PROJECT,
} from "../../src/flows/send/rendering-seats.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";

let clock: ManualClock;
let seats: RenderingSeats;
beforeEach(() => {
  clock = manualClock();
  seats = new RenderingSeats(clock);
});

/** Takes as many as there are; gives what gives them back. */
function takeAll(senderId: string): (() => void)[] {
  const taken: (() => void)[] = [];
  for (let seat = seats.take(senderId); seat !== null; seat = seats.take(senderId)) taken.push(seat);
  return taken;
}

/** Waits outside, and takes a seat when it is called if there is one, as mail does. */
function guest(senderId: string): { calls: number; leave: (() => void) | null } {
  const own: { calls: number; leave: (() => void) | null } = { calls: 0, leave: null };
  const wait = (): void =>
    void seats.free(senderId)?.then(() => {
      own.calls++;
      own.leave = seats.take(senderId);
      if (own.leave === null) wait();
    });
  wait();
  return own;
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("a project's seats", () => {
  test("are so many, and come back once, however often they are given", () => {
    const taken = takeAll("snd_a");
    expect(taken).toHaveLength(SEATS_OF_PROJECT);
    taken[0]?.();
    taken[0]?.();
    expect(takeAll("snd_a")).toHaveLength(1);
  });

  test("leave others theirs, up to those of all", () => {
    const projects = Array.from({ length: SEATS / SEATS_OF_PROJECT + 1 }, (_, nth) => `snd_${nth}`);
    expect(projects.map((id) => takeAll(id).length)).toEqual([
      ...Array(SEATS / SEATS_OF_PROJECT).fill(SEATS_OF_PROJECT),
      0,
    ]);
  });

  test("go to who waits outside, one for each that comes back and in the order of coming", async () => {
    const taken = takeAll("snd_a");
    const guests = Array.from({ length: 5 }, () => guest("snd_a"));
    for (const leave of taken.slice(0, 2)) leave();
    await settled();
    expect(guests.map(({ calls }) => calls)).toEqual([1, 1, 0, 0, 0]);
    expect(guests.filter(({ leave }) => leave !== null)).toHaveLength(2);
  });

  test("go to the project first that has the fewest", async () => {
    const all = Array.from({ length: SEATS / SEATS_OF_PROJECT }, (_, nth) => takeAll(`snd_${nth}`));
    const own = guest("snd_0");
    const other = guest("snd_new");
    all[0]?.[0]?.();
    await settled();
    expect([own.calls, other.calls]).toEqual([0, 1]);
    other.leave?.();
    await settled();
    expect(own.calls).toBe(1);
  });

  test("that nobody takes who was called for them are offered to the next ones", async () => {
    const taken = takeAll("snd_a");
    // Called, these never come: their mail was canceled.
    const lost = Array.from({ length: SEATS_OF_PROJECT }, () => seats.free("snd_a"));
    const guests = Array.from({ length: 3 }, () => guest("snd_a"));
    for (const leave of taken) leave();
    await Promise.all(lost);
    expect(guests.map(({ calls }) => calls)).toEqual([0, 0, 0]);
    clock.advance(LOOK_MS);
    await settled();
    expect(guests.map(({ calls }) => calls)).toEqual([1, 1, 1]);
  });

  test("may be waited for by a bounded number, of which one project has half", () => {
    takeAll("snd_a");
    let waiting = 0;
    while (seats.free("snd_a") !== null) waiting++;
    expect(waiting).toBeLessThanOrEqual(MAX_OUTSIDE / 2);
    expect(waiting).toBeGreaterThan(MAX_OUTSIDE / 4);
    expect(seats.free("snd_b")).not.toBeNull();
  });
});

test("everybody has a seat in the end, whatever comes between", async () => {
  const projects = ["snd_a", "snd_b", "snd_c"];
  let over = 0;
  const started: Promise<void>[] = [];
  const mail = async (senderId: string, nth: number): Promise<void> => {
    for (;;) {
      const leave = seats.take(senderId);
      if (leave !== null) {
        for (let turns = 0; turns <= nth % 4; turns++) await settled();
        leave();
        over++;
        return;
      }
      await seats.free(senderId);
      // One in five is canceled meanwhile.
      if (nth % 5 === 0) return;
      for (let turns = 0; turns < nth % 3; turns++) await settled();
    }
  };
  for (let nth = 0; nth < 300; nth++) started.push(mail(projects[nth % 3] ?? "", nth));
  const all = Promise.all(started);
  let ended = false;
  void all.then(() => {
    ended = true;
  });
  for (let looks = 0; looks < 1000 && !ended; looks++) {
    await settled();
    clock.advance(LOOK_MS / 10);
  }
  expect(ended).toBe(true);
  expect(over).toBeGreaterThanOrEqual(240);
  expect(takeAll("snd_d")).toHaveLength(SEATS_OF_PROJECT);
});
