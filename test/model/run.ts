import { chanceOf } from "../support/chance.ts";
import { DEEDS } from "./deeds.ts";
import { checkAll, checkWorld } from "./invariants.ts";
import { openWorld } from "./world.ts";

/** One operation with its own random seed, so that leaving it out does not change the others. */
export interface Step {
  name: string;
  salt: number;
}

export interface Failure {
  /** The difference. */
  sentence: string;
  /** The step at which it appeared. If only the final check found it, the step after the last. */
  at: number;
  trace: readonly string[];
}

/** Maximum number of runs of a shrinking loop. */
const MAX_TRIES = 300;

/** The steps of a seed. */
export function stepsOf(seed: number, length: number): Step[] {
  const chance = chanceOf(seed);
  const bag = Object.entries(DEEDS).flatMap(([name, { weight }]) => Array<string>(weight).fill(name));
  return Array.from({ length }, () => ({
    name: bag[chance.below(bag.length)] ?? "time",
    salt: chance.below(2 ** 32),
  }));
}

/** Plays the steps on a new world. Returns null if everything agreed with the model. */
export async function play(
  seed: number,
  steps: readonly Step[],
  told: (trace: readonly string[]) => void = () => undefined,
): Promise<Failure | null> {
  const world = await openWorld(seed);
  let at = 0;
  try {
    for (const { name, salt } of steps) {
      world.trace.push(`— ${at}: ${name}`);
      const chance = chanceOf(salt);
      const known = DEEDS[name];
      if (known === undefined) throw new Error(`nobody does ${name}`);
      await known.deed(world, chance);
      await checkWorld(world, chance);
      at++;
    }
    await checkAll(world, chanceOf(seed));
    return null;
  } catch (error) {
    return {
      sentence: error instanceof Error ? (error.stack ?? error.message) : String(error),
      at,
      trace: world.trace,
    };
  } finally {
    told(world.trace);
    await world.stage.close();
  }
}

/** Leaves out steps while the rest still fails, in ever smaller pieces. */
export async function shrink(seed: number, failing: readonly Step[], failure: Failure): Promise<Step[]> {
  let steps = failing.slice(0, failure.at + 1);
  let tries = 0;
  for (let size = Math.ceil(steps.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < steps.length && tries < MAX_TRIES; tries++) {
      const fewer = [...steps.slice(0, from), ...steps.slice(from + size)];
      const still = await play(seed, fewer);
      if (still === null) from += size;
      else steps = fewer.slice(0, still.at + 1);
    }
  }
  return steps;
}
