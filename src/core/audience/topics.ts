import { type Issue, validationError } from "../errors.ts";

/** Maximum number of topics in a project. */
export const MAX_TOPICS = 50;

/** The choice of a contact about a topic, as it is stored. */
export type Choice = 0 | 1;
/** Choices by the id of their topic. */
export type Choices = Readonly<Record<string, Choice>>;

/** The choice of a contact about a topic, as the API names it. */
export const CHOICE_NAMES = ["unsubscribed", "subscribed"] as const;
export type ChoiceName = (typeof CHOICE_NAMES)[number];

/** The facts about a topic that readers and filters see. */
export interface TopicShape {
  id: string;
  name: string;
  description: string;
  /** True if contacts get it who have not chosen. */
  defaultSubscribed: boolean;
  /** True if the page of unsubscribe links shows it. */
  visible: boolean;
}

/** Returns given choices as they are stored. @throws AppError 422 with all issues: topics that do not exist */
export function readChoices(
  topics: readonly Pick<TopicShape, "id">[],
  given: Readonly<Record<string, ChoiceName>>,
): Choices {
  const ids = new Set(topics.map(({ id }) => id));
  const issues: Issue[] = Object.keys(given)
    .filter((id) => !ids.has(id))
    .map((id) => ({ param: `topics.${id}`, message: "No topic of this project has this id." }));
  if (issues.length > 0) throw validationError(issues);
  return Object.fromEntries(
    Object.entries(given).map(([id, name]) => [id, name === "subscribed" ? 1 : 0] as const),
  );
}

/** Returns choices as the API shows them. */
export function showChoices(choices: Choices): Record<string, ChoiceName> {
  return Object.fromEntries(Object.entries(choices).map(([id, choice]) => [id, CHOICE_NAMES[choice]]));
}
