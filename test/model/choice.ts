import type { Chance } from "../support/chance.ts";
import { type Account, type Project, projectsOf, type World } from "./state.ts";

/** One thing that a user, a worker or the clock does, with what the model says of it. */
export type Deed = (world: World, chance: Chance) => Promise<void>;

/** One of the items; undefined where there is none. */
export function some<Item>(chance: Chance, items: readonly Item[]): Item | undefined {
  return items[chance.below(items.length)];
}

export function someAccount({ accounts }: World, chance: Chance): Account {
  return chance.pick([...accounts]);
}

/** Half of all goes on in one project: things meet there that would seldom do so in eight. */
const FAVOURED_PROBABILITY = 0.5;

export function someProject(world: World, chance: Chance): Project {
  const projects = projectsOf(world);
  const project = chance.happens(FAVOURED_PROBABILITY) ? projects[0] : some(chance, projects);
  if (project === undefined) throw new Error("a world has projects");
  return project;
}

/** Some of the items, in their order. */
export function subset<Item>(chance: Chance, items: readonly Item[], probability = 0.4): Item[] {
  return items.filter(() => chance.happens(probability));
}

/** What a deed on one item of a project works on; null where the project has none. */
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
