import { type Issue, validationError } from "../errors.ts";

/** Maximum number of topics in a project. */
export const MAX_TOPICS = 50;

/** The choice of a contact about a topic, as it is stored. */
export type Choice = 0 | 1 | 2;
/** The choice of a person who has not used the mailed link yet, and gets no mail of the topic. */
export const PENDING = 2;
/** Choices by the id of their topic. */
export type Choices = Readonly<Record<string, Choice>>;

/** The choice of a contact about a topic, as the API names it. */
export const CHOICE_NAMES = ["unsubscribed", "subscribed", "pending"] as const;
export type ChoiceName = (typeof CHOICE_NAMES)[number];
/** The choices that a client may give. */
export const GIVEN_CHOICES = ["unsubscribed", "subscribed"] as const;
export type GivenChoice = (typeof GIVEN_CHOICES)[number];

/** The facts about a topic that readers and filters see. */
export interface TopicShape {
  id: string;
  name: string;
  description: string;
  /** True if contacts get it who have not chosen. */
  defaultSubscribed: boolean;
  /** True if the page of unsubscribe links shows it. */
  visible: boolean;
  /** True if people join it only by a mailed link. */
  doubleOptIn: boolean;
}

/**
 * Returns given choices as they are stored.
 * @param asks true if the person gets a link to join topics with `doubleOptIn`, whose choice is pending then
 * @throws AppError 422 with all issues: topics that do not exist, or that ask for a link where none is mailed
 */
export function readChoices(
  topics: readonly Pick<TopicShape, "id" | "doubleOptIn">[],
  given: Readonly<Record<string, GivenChoice>>,
  asks: boolean,
): Choices {
  const shapes = new Map(topics.map((topic) => [topic.id, topic]));
  const issues: Issue[] = [];
  const choices = Object.entries(given).map(([id, name]) => {
    const topic = shapes.get(id);
    const byLink = name === "subscribed" && topic?.doubleOptIn === true;
    const fault =
      topic === undefined ? "No topic of this project has this id." : byLink && !asks ? ONLY_BY_LINK : null;
    if (fault !== null) issues.push({ param: `topics.${id}`, message: fault });
    return [id, byLink ? PENDING : name === "subscribed" ? 1 : 0] as const;
  });
  if (issues.length > 0) throw validationError(issues);
  return Object.fromEntries(choices);
}

const ONLY_BY_LINK =
  "People join this topic only by a mailed link. Add or change one contact at a time, and the link is mailed.";

/** Returns the topics of choices whose person must use a link. */
export function pendingTopics(choices: Choices): string[] {
  return Object.keys(choices).filter((id) => choices[id] === PENDING);
}

/** Returns choices as the API shows them. */
export function showChoices(choices: Choices): Record<string, ChoiceName> {
  return Object.fromEntries(Object.entries(choices).map(([id, choice]) => [id, CHOICE_NAMES[choice]]));
}
