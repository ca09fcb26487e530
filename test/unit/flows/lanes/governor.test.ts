import { describe, expect, test } from "bun:test";
import { HOUR_MS, MINUTE_MS } from "../../../../src/core/time/units.ts";
import {
  BLOCK_MS,
  type Fate,
  FIRST_REST_MS,
  govern,
  GROWTH,
  isBlocked,
  type LaneState,
  LEAST_RATE,
  LONGEST_NAMED_MS,
  LONGEST_REST_MS,
  REFUSALS_TO_BLOCK,
  rests,
  type Sign,
  type SignKind,
  steady,
} from "../../../../src/flows/lanes/governor.ts";
import { chanceOf } from "../../../support/chance.ts";

const LIMITS = { rate: 1200, connections: 8 };
const NOW = 1_800_000_000_000;

function sign(kind: SignKind, changes: Partial<Sign> = {}): Sign {
  const now = changes.now ?? NOW;
  const cause = { category: "rate" as const, reply: "421 4.7.0 slow down", at: now };
  return {
    kind,
    now,
    limits: LIMITS,
    startedAt: now,
    namedMs: null,
    cause,
    took: { count: 0, since: now },
    ...changes,
  };
}

const slowed: LaneState = { ...steady(LIMITS), rate: 100, step: 5, loweredAt: NOW - HOUR_MS };

interface Row {
  says: string;
  given?: Partial<LaneState>;
  sign: Sign;
  lane: Partial<LaneState>;
  fate: Fate;
}

const ROWS: readonly Row[] = [
  {
    says: "a steady lane that is told to slow down halves its rate and waits a minute",
    sign: sign("rate"),
    lane: { rate: 600, opensAt: NOW + MINUTE_MS },
    fate: "later",
  },
  {
    says: "a lane keeps nine tenths of what the provider took, and waits until that is a minute old",
    sign: sign("rate", { took: { count: 30, since: NOW - 2000 } }),
    lane: { rate: 27, opensAt: NOW + 58_000 },
    fate: "later",
  },
  {
    says: "a lane waits as long as the reply says",
    sign: sign("rate", { namedMs: 300_000 }),
    lane: { rate: 600, opensAt: NOW + 300_000 },
    fate: "later",
  },
  {
    says: "a lane waits no longer than a day, whatever the reply says",
    sign: sign("rate", { namedMs: LONGEST_NAMED_MS * 10 }),
    lane: { opensAt: NOW + LONGEST_NAMED_MS },
    fate: "later",
  },
  {
    says: "a rate is lowered once a minute",
    given: { rate: 100, loweredAt: NOW - MINUTE_MS + 1 },
    sign: sign("rate"),
    lane: { rate: 100 },
    fate: "later",
  },
  {
    says: "a message that began before the rate was lowered lowers it no further",
    given: { rate: 100, loweredAt: NOW - 2 * MINUTE_MS },
    sign: sign("rate", { startedAt: NOW - 3 * MINUTE_MS }),
    lane: { rate: 100 },
    fate: "later",
  },
  {
    says: "a rate falls to one message a minute and no lower",
    given: { rate: LEAST_RATE },
    sign: sign("rate"),
    lane: { rate: LEAST_RATE },
    fate: "later",
  },
  {
    says: "a provider that wants fewer connections gets half as many",
    sign: sign("connections"),
    lane: { connections: 4, rate: LIMITS.rate, opensAt: null },
    fate: "later",
  },
  {
    says: "one connection is left",
    given: { connections: 1 },
    sign: sign("connections"),
    lane: { connections: 1 },
    fate: "later",
  },
  {
    says: "doubt about our reputation lets the lane rest for a quarter of an hour, and halves its rate",
    sign: sign("reputation"),
    lane: { rate: 600, restMs: FIRST_REST_MS, opensAt: NOW + FIRST_REST_MS },
    fate: "later",
  },
  {
    says: "if the message that tries after a rest fails, the next rest is twice as long",
    given: { restMs: FIRST_REST_MS, opensAt: NOW },
    sign: sign("reputation"),
    lane: { restMs: 2 * FIRST_REST_MS, opensAt: NOW + 2 * FIRST_REST_MS },
    fate: "later",
  },
  {
    says: "a rest lasts no longer than four hours",
    given: { restMs: LONGEST_REST_MS, opensAt: NOW },
    sign: sign("reputation"),
    lane: { restMs: LONGEST_REST_MS, opensAt: NOW + LONGEST_REST_MS },
    fate: "later",
  },
  {
    says: "messages that were in flight when the lane closed do not extend its rest",
    given: { restMs: FIRST_REST_MS, opensAt: NOW + FIRST_REST_MS },
    sign: sign("reputation"),
    lane: { restMs: FIRST_REST_MS, opensAt: NOW + FIRST_REST_MS },
    fate: "later",
  },
  {
    says: "the first refusal of our address only makes it doubtful",
    sign: sign("blocked"),
    lane: { refusals: 1, opensAt: null, rate: LIMITS.rate },
    fate: "doubtful",
  },
  {
    says: "the third one in a row blocks the lane for an hour, which holds its messages",
    given: { refusals: 2 },
    sign: sign("blocked"),
    lane: { refusals: REFUSALS_TO_BLOCK, opensAt: NOW + BLOCK_MS, rate: 600 },
    fate: "held",
  },
  {
    says: "the message that tries after the hour is held for another one if it is refused",
    given: { refusals: REFUSALS_TO_BLOCK, opensAt: NOW },
    sign: sign("blocked"),
    lane: { refusals: REFUSALS_TO_BLOCK, opensAt: NOW + BLOCK_MS },
    fate: "held",
  },
  {
    says: "an acceptance lifts the block, forgets the rests, and lets the lane grow",
    given: { ...slowed, refusals: REFUSALS_TO_BLOCK, opensAt: NOW - 1, restMs: FIRST_REST_MS },
    sign: sign("accepted"),
    lane: { refusals: 0, opensAt: null, restMs: 0, rate: 105, step: 10 },
    fate: "normal",
  },
  {
    says: "a message that began before the lane closed does not open it",
    given: { ...slowed, refusals: REFUSALS_TO_BLOCK, opensAt: NOW + 1 },
    sign: sign("accepted"),
    lane: { refusals: REFUSALS_TO_BLOCK, opensAt: NOW + 1, rate: 100 },
    fate: "normal",
  },
  {
    says: "a lane grows once a minute",
    given: { ...slowed, raisedAt: NOW - MINUTE_MS + 1 },
    sign: sign("accepted"),
    lane: { rate: 100 },
    fate: "normal",
  },
  {
    says: "a lane grows by a twentieth of its limit at most, and not above it",
    given: { ...slowed, rate: 1190, step: 1000 },
    sign: sign("accepted"),
    lane: { rate: 1200, step: LIMITS.rate * GROWTH },
    fate: "normal",
  },
];

describe("the governor", () => {
  test.each(ROWS.map((row) => [row.says, row] as const))("%s", (_, row) => {
    const { state, fate } = govern({ ...steady(LIMITS), ...row.given }, row.sign);
    expect(state).toMatchObject(row.lane);
    expect(fate).toBe(row.fate);
  });

  test("after each random walk, rate, connections and rests were within their bounds at every step", () => {
    const faults: string[] = [];
    for (let seed = 1; seed <= 300; seed++) faults.push(...walk(seed));
    expect(faults.slice(0, 5)).toEqual([]);
  });

  test("a lane whose messages are accepted is steady within an hour, however low it was", () => {
    let state: LaneState = { ...steady(LIMITS), rate: LEAST_RATE, connections: 1, step: 0 };
    for (let minute = 0; minute < 60; minute++)
      state = govern(state, sign("accepted", { now: NOW + minute * MINUTE_MS })).state;
    expect(state).toMatchObject({ rate: LIMITS.rate, connections: LIMITS.connections });
  });
});

/** Gives a lane random signs. Returns the bounds that it broke. */
function walk(seed: number): string[] {
  const chance = chanceOf(seed);
  const faults: string[] = [];
  const check = (holds: boolean, what: string) => void (holds || faults.push(`seed ${seed}: ${what}`));
  let now = NOW;
  let state = steady(LIMITS);
  let [loweredAt, raisedAt] = [0, 0];
  for (let step = 0; step < 200; step++) {
    now += chance.pick([1, 500, 20_000, MINUTE_MS, FIRST_REST_MS, 5 * HOUR_MS]);
    const kind = chance.pick<SignKind>([
      ...(["accepted", "accepted", "accepted"] as const),
      ...(["rate", "connections", "reputation", "blocked"] as const),
    ]);
    const took = { count: chance.below(100), since: now - chance.below(MINUTE_MS) };
    const namedMs = chance.happens(0.2) ? chance.below(2 * LONGEST_NAMED_MS) : null;
    const before = state;
    const startedAt = now - chance.below(30_000);
    const after = govern(before, sign(kind, { now, took, namedMs, startedAt }));
    state = after.state;
    check(state.rate <= LIMITS.rate && state.rate >= LEAST_RATE, `rate ${state.rate}`);
    check(
      state.connections >= 1 && state.connections <= LIMITS.connections,
      `${state.connections} connections`,
    );
    check((state.opensAt ?? 0) <= now + LONGEST_NAMED_MS, `opens in ${(state.opensAt ?? 0) - now} ms`);
    check(state.restMs <= LONGEST_REST_MS, `rests for ${state.restMs} ms`);
    check(state.refusals <= REFUSALS_TO_BLOCK, `${state.refusals} refusals`);
    if (state.rate < before.rate || state.connections < before.connections) {
      check(now - loweredAt >= MINUTE_MS, "lowered twice in a minute");
      loweredAt = now;
    }
    if (state.rate > before.rate) {
      check(now - raisedAt >= MINUTE_MS, "raised twice in a minute");
      check(state.rate - before.rate <= LIMITS.rate * GROWTH + 1e-9, `grew by ${state.rate - before.rate}`);
      raisedAt = now;
    }
    if (kind !== "accepted") check(after.fate !== "normal", `${kind} has no effect on its message`);
    if (isBlocked(before) && kind === "accepted" && !rests(before, now))
      check(!isBlocked(state), "an acceptance leaves the lane blocked");
    if (!isBlocked(before) && isBlocked(state)) check(rests(state, now), "a blocked lane does not rest");
  }
  return faults;
}
