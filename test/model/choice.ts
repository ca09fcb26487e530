import type { Chance } from "../support/chance.ts";
import { type Account, type Project, projectsOf, type World } from "./state.ts";

/** An operation of a user, a worker or the clock, and its effect on the model. */
export type Deed = (world: World, chance: Chance) => Promise<void>;

/** A random item, or undefined if there is none. */
export function some<Item>(chance: Chance, items: readonly Item[]): Item | undefined {
  return items[chance.below(items.length)];
}

export function someAccount({ accounts }: World, chance: Chance): Account {
  return chance.pick([...accounts]);
}

/** Chooses the same project half of the time, so that operations meet that seldom would among eight. */
const FAVOURED_PROBABILITY = 0.5;

export function someProject(world: World, chance: Chance): Project {
  const projects = projectsOf(world);
  const project = chance.happens(FAVOURED_PROBABILITY) ? projects[0] : some(chance, projects);
  if (project === undefined) throw new Error("a world has projects");
  return project;
}

/** Some of the items, in order. */
export function subset<Item>(chance: Chance, items: readonly Item[], probability = 0.4): Item[] {
  return items.filter(() => chance.happens(probability));
}

/** The item of a project that an operation uses, or null if the project has none. */
export function someOf<Item>(
  world: World,
  chance: Chance,
  itemsOf: (project: Project) => readonly Item[],
): { project: Project; item: Item } | null {
  const owners = projectsOf(world).filter((project) => itemsOf(project).length > 0);
  const project = some(chance, owners);
  const item = project === undefined ? undefined : some(chance, itemsOf(project));
  return project === undefined || item === undefined ? null : { project, item };
}
