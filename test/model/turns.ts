import { LOST_HINT_MS } from "../../src/flows/sweep/recent-hints.ts";
import { type Deed, some } from "./choice.ts";
import { repeat } from "./request.ts";
import { DAY_MS } from "./state.ts";

/** Steps of the clock in milliseconds. */
const STEPS = [1, 1000, 7000, 61_000, 400_000, 3_600_000, 5 * 3_600_000, DAY_MS, 8 * DAY_MS] as const;

export const time: Deed = async ({ stage, trace }, chance) => {
  const ms = chance.happens(0.8)
    ? chance.pick(STEPS.slice(0, 7) as [number, ...number[]])
    : chance.pick(STEPS);
  stage.clock.advance(ms);
  trace.push(`the clock goes on by ${ms} ms`);
};

/** A queue may lose everything. Due rows are found in the database, once earlier hints had their time. */
export const loseHints: Deed = async ({ stage, trace }) => {
  trace.push(`the queue forgets, and the clock goes on by ${LOST_HINT_MS} ms`);
  stage.loseHints();
  stage.clock.advance(LOST_HINT_MS);
};

/** An answer can be replayed within a day, and is then removed. */
export const repeatLater: Deed = async (world, chance) => {
  const now = world.stage.clock.now();
  world.kept = world.kept.filter(({ at, by }) => now - at < DAY_MS && by.revokedAt === null);
  const kept = some(chance, world.kept);
  if (kept !== undefined) await repeat(world, chance, kept);
};
