import { describe, expect, test } from "bun:test";
import {
  FREE_OCTETS,
  type Holder,
  Intake,
  PROGRESS_MS,
  PROGRESS_OCTETS,
} from "../../../../src/smtp/listener/intake.ts";
import { manualClock, type ManualClock } from "../../../support/manual-clock.ts";

const LIMIT = 4 * FREE_OCTETS;
const LARGE = 2 * FREE_OCTETS;
const BARELY_LARGE = FREE_OCTETS + 1;

/** A sender as a connection would be: reads unless told to wait, and ends if given up. */
class Sender implements Holder {
  octets = 0;
  paused = false;
  resumed = 0;
  givenUp = 0;

  constructor(readonly intake: Intake) {}

  bring(octets: number): this {
    this.octets += octets;
    this.paused = !this.intake.update(this, this.octets, "coming");
    return this;
  }

  finish(): void {
    this.paused = !this.intake.update(this, this.octets, "whole");
  }

  leave(): void {
    this.octets = 0;
    this.paused = !this.intake.update(this, 0, "none");
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
    this.resumed++;
  }

  giveUp(): void {
    this.givenUp++;
    this.leave();
  }
}

interface Scene {
  clock: ManualClock;
  intake: Intake;
  sender(octets?: number): Sender;
}

function scene(limit = LIMIT): Scene {
  const clock = manualClock();
  const intake = new Intake(clock, limit);
  return { clock, intake, sender: (octets = 0) => new Sender(intake).bring(octets) };
}

describe("which large message is read", () => {
  test("at the limit all are read, one octet past it only the oldest large one and the small ones", () => {
    const { sender } = scene();
    const [oldest, younger] = [sender(LARGE), sender(LARGE)];
    expect([oldest.paused, younger.paused]).toEqual([false, false]);
    younger.bring(1);
    expect([oldest.paused, younger.paused]).toEqual([false, true]);
    expect(sender(FREE_OCTETS).paused).toBe(false);
    expect(sender(FREE_OCTETS + 1).paused).toBe(true);
    oldest.bring(LARGE);
    expect(oldest.paused).toBe(false);
  });

  test("the oldest is the one that was large first, not the one that began first", () => {
    const { sender } = scene();
    const [early, late] = [sender(1), sender(LIMIT)];
    early.bring(LARGE);
    expect([early.paused, late.bring(1).paused]).toEqual([true, false]);
  });

  test("if the oldest is complete, the next one continues, and the rest when it is answered", () => {
    const { sender } = scene();
    const [oldest, next, last] = [sender(LIMIT - FREE_OCTETS), sender(BARELY_LARGE), sender(BARELY_LARGE)];
    oldest.finish();
    expect([next.paused, last.paused]).toEqual([false, true]);
    next.bring(FREE_OCTETS);
    oldest.leave();
    expect([next.paused, last.paused]).toEqual([false, true]);
    next.leave();
    expect(last.paused).toBe(false);
  });

  test("a message that turns out faulty holds no memory, and makes room", () => {
    const { sender, intake } = scene();
    const [faulty, waiting] = [sender(LIMIT), sender(LARGE)];
    intake.update(faulty, 0, "coming");
    expect([waiting.paused, intake.octets]).toEqual([false, LARGE]);
  });

  test("free memory is offered to one waiting message after another, not to all at once", () => {
    const { sender } = scene();
    const full = sender(LIMIT);
    const waiting = Array.from({ length: 8 }, () => sender(FREE_OCTETS + 1));
    full.bring(LIMIT).leave();
    expect(waiting.filter(({ paused }) => !paused).length).toBe(1);
    waiting[0]?.leave();
    expect(waiting[1]?.paused).toBe(false);
  });
});

describe("over one and a half times the limit", () => {
  test("the oldest waits for answers, while small messages continue and may begin", () => {
    const { sender, intake } = scene();
    const [whole, oldest] = [sender(1.5 * LIMIT - BARELY_LARGE), sender(BARELY_LARGE)];
    whole.finish();
    expect(oldest.paused).toBe(false);
    expect(oldest.bring(1).paused).toBe(true);
    expect([sender(FREE_OCTETS).paused, intake.hasRoom]).toEqual([false, true]);
    whole.leave();
    expect(oldest.paused).toBe(false);
  });

  test("the oldest continues if no answer is pending", () => {
    const { sender } = scene();
    expect(sender(1.5 * LIMIT + 1).paused).toBe(false);
  });
});

describe("if the oldest waits for the last answer, and that frees no memory", () => {
  test("it continues after an empty message", () => {
    const { sender, intake } = scene();
    const [empty, oldest] = [sender(0), sender(LARGE)];
    empty.finish();
    oldest.bring(2 * LIMIT);
    expect([intake.hasRoom, oldest.paused]).toEqual([false, true]);
    empty.leave();
    expect(oldest.paused).toBe(false);
  });

  test("it continues if as much of the sender's next message has already arrived", () => {
    const { sender, intake } = scene();
    const [ahead, oldest] = [sender(1), sender(LARGE)];
    ahead.finish();
    oldest.bring(2 * LIMIT);
    expect([intake.hasRoom, oldest.paused]).toEqual([false, true]);
    ahead.bring(LARGE);
    expect([ahead.paused, oldest.paused]).toEqual([true, false]);
  });
});

describe("over twice the limit", () => {
  test("no message may begin, and small ones wait", () => {
    const { sender, intake } = scene();
    const whole = sender(2 * LIMIT);
    whole.finish();
    expect(intake.hasRoom).toBe(true);
    const small = sender(1);
    expect([intake.hasRoom, small.paused]).toEqual([false, true]);
    whole.leave();
    expect([intake.hasRoom, small.paused]).toEqual([true, false]);
  });

  test("a message that follows an answered one does not count as complete", () => {
    const { sender, intake } = scene();
    const again = sender(LARGE);
    again.finish();
    again.bring(1);
    expect(sender(2 * LIMIT).paused).toBe(true);
    expect([intake.hasRoom, again.paused]).toEqual([false, false]);
  });

  test("messages without content wait, and continue with the others", () => {
    const { sender } = scene();
    const [begun, whole] = [sender(0), sender(2 * LIMIT)];
    whole.bring(1).finish();
    expect(begun.paused).toBe(true);
    whole.leave();
    expect(begun.paused).toBe(false);
  });

  test("the oldest waits for our own answers, and is not given up for that", () => {
    const { sender, clock } = scene();
    const whole = sender(2 * LIMIT);
    whole.finish();
    const oldest = sender(LARGE);
    expect(oldest.paused).toBe(true);
    clock.advance(10 * PROGRESS_MS);
    expect(oldest.givenUp).toBe(0);
    whole.leave();
    expect(oldest.paused).toBe(false);
  });

  test("small slow ones are given up one by one until there is room", () => {
    const { sender, clock, intake } = scene();
    const dripping = Array.from({ length: 9 }, () => sender(FREE_OCTETS));
    expect(intake.hasRoom).toBe(false);
    clock.advance(2 * PROGRESS_MS);
    expect(dripping.map(({ givenUp }) => givenUp)).toEqual([1, 0, 0, 0, 0, 0, 0, 0, 0]);
    expect([intake.hasRoom, sender(1).paused]).toEqual([true, true]);
    clock.advance(2 * PROGRESS_MS * dripping.length);
    expect(dripping.filter(({ paused }) => paused)).toEqual([]);
    expect(intake.octets).toBeLessThanOrEqual(LIMIT);
  });
});

describe("the oldest is given up if it is slow", () => {
  test("one octet short of the required progress, but not with it", () => {
    for (const [octets, givenUp] of [
      [PROGRESS_OCTETS, 0],
      [PROGRESS_OCTETS - 1, 1],
    ] as const) {
      const { sender, clock } = scene();
      const oldest = sender(LIMIT);
      const waiting = sender(LARGE);
      clock.advance(PROGRESS_MS);
      oldest.bring(octets);
      clock.advance(PROGRESS_MS);
      expect([oldest.givenUp, waiting.resumed]).toEqual([givenUp, givenUp]);
    }
  });

  test("not while no other message waits", () => {
    const { sender, clock } = scene();
    const alone = sender(LIMIT + LARGE);
    clock.advance(10 * PROGRESS_MS);
    expect(alone.givenUp).toBe(0);
  });

  test("a message that became the oldest just before the check has its full time", () => {
    const { sender, clock } = scene();
    const [first, second, third] = [sender(LIMIT - FREE_OCTETS), sender(BARELY_LARGE), sender(BARELY_LARGE)];
    clock.advance(PROGRESS_MS - 1);
    first.finish();
    clock.advance(1);
    expect(second.givenUp).toBe(0);
    clock.advance(PROGRESS_MS);
    expect([second.givenUp, third.paused]).toEqual([1, false]);
  });

  test("a message that had to wait between two checks is not judged at the second", () => {
    const { sender, clock } = scene(16 * FREE_OCTETS);
    const first = sender(16 * FREE_OCTETS);
    const others = Array.from({ length: 10 }, () => sender(FREE_OCTETS + 1));
    first.leave();
    expect(others.map(({ paused }) => paused).indexOf(true)).toBe(6);
    clock.advance(PROGRESS_MS);
    others[2]?.bring(8 * FREE_OCTETS);
    expect(others.map(({ paused }) => paused).indexOf(true)).toBe(1);
    clock.advance(PROGRESS_MS - 1);
    others[0]?.finish();
    expect(others[1]?.paused).toBe(false);
    clock.advance(1);
    expect(others[1]?.givenUp).toBe(0);
  });

  test("a message that waits for one that neither grows nor ends is let in when that one goes", () => {
    const { sender, clock } = scene();
    const [first, silent] = [sender(LIMIT), sender(LIMIT - FREE_OCTETS)];
    const waiting = sender(LARGE);
    first.leave();
    expect([silent.paused, waiting.paused]).toEqual([false, true]);
    clock.advance(2 * PROGRESS_MS);
    expect(waiting.paused).toBe(false);
  });
});

/** Lehmer's generator: the same numbers in every run of a seed. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 48271) % 2147483647;
    return state % below;
  };
}

const MAX_MESSAGE = 16 * FREE_OCTETS;
const MAX_READ = PROGRESS_OCTETS + FREE_OCTETS;
const SENDERS = 30;
/** Far more rounds than any plan of these sizes takes. */
const MAX_ROUNDS = 3000;

/** One sender of the random plan. A steady one makes its required progress in every round in which it is read. */
class Planned extends Sender {
  state: "new" | "sending" | "whole" | "done" | "givenUp" = "new";

  constructor(
    intake: Intake,
    readonly size: number,
    readonly steady: boolean,
  ) {
    super(intake);
  }

  turn(next: (below: number) => number): void {
    if (this.state === "whole" && next(3) === 0) {
      this.leave();
      this.state = "done";
    }
    // If there is no room, its DATA is answered 452 and it tries again.
    if (this.state === "new" && this.intake.hasRoom) {
      this.state = "sending";
      this.bring(0);
    }
    if (this.state !== "sending" || this.paused) return;
    if (!this.steady) {
      // Slow senders send much at first.
      if (next(4) === 0) this.bring(this.octets === 0 ? 1 + next(MAX_READ) : 1);
      return;
    }
    this.bring(Math.min(this.size - this.octets, PROGRESS_OCTETS + next(MAX_READ - PROGRESS_OCTETS)));
    if (this.octets < this.size) return;
    this.finish();
    this.state = "whole";
  }

  override giveUp(): void {
    super.giveUp();
    this.state = "givenUp";
  }
}

test("whatever the order of events, memory is bounded, a steady sender finishes, and no sender waits for ever", () => {
  for (let seed = 1; seed <= 150; seed++) {
    const next = numbers(seed);
    const { clock, intake } = scene(2 * MAX_MESSAGE);
    const senders = Array.from({ length: SENDERS }, () => {
      return new Planned(intake, 1 + next(next(3) === 0 ? 2000 : MAX_MESSAGE), next(4) > 0);
    });
    const open = () => senders.some((one) => one.paused || (one.steady && one.state !== "done"));
    let rounds = 0;
    for (; open() && rounds < MAX_ROUNDS; rounds++) {
      for (let turns = 0; turns < SENDERS; turns++) senders[next(SENDERS)]?.turn(next);
      for (const sender of senders) sender.turn(next);
      const sum = senders.reduce((octets, sender) => octets + sender.octets, 0);
      expect(intake.octets, `seed ${seed}`).toBe(sum);
      expect(sum, `seed ${seed}`).toBeLessThanOrEqual(4 * MAX_MESSAGE + MAX_MESSAGE + MAX_READ);
      clock.advance(next(PROGRESS_MS / 2));
    }
    expect(rounds, `seed ${seed} does not come to an end`).toBeLessThan(MAX_ROUNDS);
    expect(senders.filter((one) => one.steady && one.state !== "done").length, `seed ${seed}`).toBe(0);
    expect(senders.filter(({ paused }) => paused).length, `seed ${seed}`).toBe(0);
  }
});
