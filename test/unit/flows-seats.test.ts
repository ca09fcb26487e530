import { beforeEach, describe, expect, test } from "bun:test";
import { LOOK_MS, MAX_OUTSIDE, RENDERING_SEATS, Seats } from "../../src/flows/send/seats.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";

const { total: SEATS, ofProject: SEATS_OF_PROJECT } = RENDERING_SEATS;

let clock: ManualClock;
let seats: Seats;
let mails = 0;
beforeEach(() => {
  clock = manualClock();
  seats = new Seats(clock, RENDERING_SEATS);
});

const newKey = (): string => `mail${mails++}`;

/** Takes as many as there are; gives what gives them back. */
function takeAll(senderId: string): (() => void)[] {
  const taken: (() => void)[] = [];
  const next = () => seats.take({ senderId, key: newKey() });
  for (let seat = next(); seat !== null; seat = next()) taken.push(seat);
  return taken;
}

/** Waits outside, and takes a seat when it is called if there is one, as mail does. */
function guest(senderId: string): { calls: number; leave: (() => void) | null } {
  const own: { calls: number; leave: (() => void) | null } = { calls: 0, leave: null };
  const key = newKey();
  const wait = (): void =>
    void seats.free({ senderId, key })?.then(() => {
      own.calls++;
      own.leave = seats.take({ senderId, key });
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
    const lost = Array.from({ length: SEATS_OF_PROJECT }, () =>
      seats.free({ senderId: "snd_a", key: newKey() }),
    );
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
    while (seats.free({ senderId: "snd_a", key: newKey() }) !== null) waiting++;
    expect(waiting).toBeLessThanOrEqual(MAX_OUTSIDE / 2);
    expect(waiting).toBeGreaterThan(MAX_OUTSIDE / 4);
    expect(seats.free({ senderId: "snd_b", key: newKey() })).not.toBeNull();
  });
});

describe("seats by weight", () => {
  beforeEach(() => {
    seats = new Seats(clock, { total: 100, ofProject: Infinity });
  });

  /** Whether a promise has resolved. */
  function watch(waiting: Promise<void> | null): { called: boolean } {
    const own = { called: false };
    void waiting?.then(() => {
      own.called = true;
    });
    return own;
  }

  test("are taken up to all of them, and by one alone that is heavier", () => {
    const leave = seats.take({ senderId: "snd_a", key: "a", weight: 100 });
    expect([seats.take({ senderId: "snd_b", key: "b", weight: 1 }), leave]).toEqual([
      null,
      expect.any(Function),
    ]);
    leave?.();
    seats.take({ senderId: "snd_b", key: "b", weight: 1 })?.();
    expect(seats.take({ senderId: "snd_c", key: "c", weight: 101 })).not.toBeNull();
  });

  test("go to the heavy one that waits before any light one that comes later, whosever that is", async () => {
    const leaves = [
      seats.take({ senderId: "snd_a", key: "a1", weight: 50 }),
      seats.take({ senderId: "snd_a", key: "a2", weight: 40 }),
    ];
    expect([seats.take({ senderId: "snd_b", key: "heavy", weight: 60 }), seats.lacking]).toEqual([null, 0]);
    const heavy = watch(seats.free({ senderId: "snd_b", key: "heavy", weight: 60 }));
    expect(seats.lacking).toBe(50);
    expect([
      seats.take({ senderId: "snd_c", key: "light", weight: 1 }),
      seats.take({ senderId: "snd_a", key: "a3", weight: 1 }),
    ]).toEqual([null, null]);
    const light = watch(seats.free({ senderId: "snd_c", key: "light", weight: 1 }));
    leaves[1]?.();
    await settled();
    expect([heavy.called, light.called, seats.lacking]).toEqual([false, false, 10]);
    leaves[0]?.();
    await settled();
    expect([heavy.called, light.called, seats.lacking]).toEqual([true, true, 0]);
    // Kept for them: nobody else has it meanwhile.
    expect(seats.take({ senderId: "snd_d", key: "other", weight: 40 })).toBeNull();
    expect([
      seats.take({ senderId: "snd_b", key: "heavy", weight: 60 }),
      seats.take({ senderId: "snd_c", key: "light", weight: 1 }),
    ]).not.toContain(null);
    expect(seats.take({ senderId: "snd_d", key: "other", weight: 39 })).not.toBeNull();
  });

  test("that are kept for one who does not come are others' after a while", async () => {
    const leave = seats.take({ senderId: "snd_a", key: "a", weight: 100 });
    const lost = watch(seats.free({ senderId: "snd_b", key: "lost", weight: 100 }));
    const next = watch(seats.free({ senderId: "snd_c", key: "next", weight: 100 }));
    leave?.();
    await settled();
    expect([lost.called, next.called]).toEqual([true, false]);
    clock.advance(LOOK_MS);
    await settled();
    expect(next.called).toBe(true);
    // Who comes late waits again.
    expect(seats.take({ senderId: "snd_b", key: "lost", weight: 100 })).toBeNull();
    seats.take({ senderId: "snd_c", key: "next", weight: 100 })?.();
    expect(seats.take({ senderId: "snd_b", key: "lost", weight: 100 })).not.toBeNull();
  });

  test("go to the lane of a project that has the least, however many of another wait", async () => {
    const asking = (lane: string, nth = 0) => ({ senderId: "snd_a", lane, key: `${lane}${nth}`, weight: 50 });
    const leaves = [seats.take(asking("slow", 1)), seats.take(asking("slow", 2))];
    const slow = [3, 4, 5].map((nth) => watch(seats.free(asking("slow", nth))));
    const other = watch(seats.free(asking("other")));
    leaves[0]?.();
    await settled();
    expect([other.called, ...slow.map(({ called }) => called)]).toEqual([true, false, false, false]);
    leaves[1]?.();
    await settled();
    expect(slow.map(({ called }) => called)).toEqual([true, false, false]);
  });

  test("leave nothing behind when all is over", async () => {
    for (let round = 0; round < 50; round++) {
      const leaves = [70, 30].map((weight, at) =>
        seats.take({ senderId: `snd_${at}`, key: `${round}.${at}`, weight }),
      );
      const calls = [10, 90, 60].map((weight, at) =>
        watch(seats.free({ senderId: `snd_w${at}`, key: `${round}.w${at}`, weight })),
      );
      for (const leave of leaves) leave?.();
      for (let look = 0; look < 5; look++) {
        await settled();
        clock.advance(LOOK_MS);
      }
      expect(calls.map(({ called }) => called)).toEqual([true, true, true]);
    }
    expect([seats.lacking, clock.pending()]).toEqual([0, 0]);
    expect(seats.take({ senderId: "snd_z", key: "all", weight: 100 })).not.toBeNull();
  });
});

test("everybody has a seat in the end, whatever comes between", async () => {
  const projects = ["snd_a", "snd_b", "snd_c"];
  let over = 0;
  const started: Promise<void>[] = [];
  const mail = async (senderId: string, nth: number): Promise<void> => {
    for (;;) {
      const leave = seats.take({ senderId, key: `mail${nth}` });
      if (leave !== null) {
        for (let turns = 0; turns <= nth % 4; turns++) await settled();
        leave();
        over++;
        return;
      }
      await seats.free({ senderId, key: `mail${nth}` });
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
