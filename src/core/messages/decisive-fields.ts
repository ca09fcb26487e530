import type { Issue } from "../errors.ts";
import { nearField, plainName } from "../field-names.ts";
import { SendItem } from "./send-item.ts";

/** Fields that decide when, whether or to whom a message leaves, or what it says. Ignoring one would send another message. */
const DECISIVE: readonly string[] = [
  "scheduledAt",
  "to",
  "cc",
  "bcc",
  "replyTo",
  "templateId",
  "data",
  "unsubscribeLink",
  "topicId",
  "keepContent",
  "stream",
];

/** Fields of a reply alone that decide to whom it goes: to all, and as an answer to which message. */
const OF_REPLIES: readonly string[] = ["replyAll", "messageId"];

/** Our fields, with the names that other products have for them, as `plainName` makes those. */
const FOREIGN_NAMES: Readonly<Record<string, string>> = {
  scheduledAt:
    "sendat sendon sendtime deliverat deliverytime o:deliverytime schedule scheduled scheduledfor scheduledtime scheduletime delay",
  to: "recipient recipients personalizations",
  replyTo: "replytoaddress h:replyto",
  templateId: "template templatename templatealias templateslug",
  data: "variables templatedata templatemodel templatevariables templateparams dynamictemplatedata substitutions substitutiondata mergevars globalmergevars t:variables recipientvariables",
  stream: "messagestream",
};
const FOREIGN: ReadonlyMap<string, string> = new Map(
  Object.entries(FOREIGN_NAMES).flatMap(([ours, names]) =>
    names.split(" ").map((name): [string, string] => [name, ours]),
  ),
);

/**
 * Maximum number of names checked in one item. A larger item is refused, because its meaning would be uncertain.
 */
export const MAX_ITEM_FIELDS = 1000;

/**
 * Returns the issues of fields that resemble a decisive one: `scheduled_at` must not send at once.
 * @param fields the fields that are read. Another decisive field is refused too
 * @param spelling how the fields are written: `scheduledAt` is ours
 */
export function decisiveFieldIssues(
  item: object,
  fields: ReadonlySet<string>,
  spelling: (ours: string) => string = (ours) => ours,
): Issue[] {
  const names = Object.keys(item);
  if (names.length > MAX_ITEM_FIELDS)
    return [{ param: "", message: `must have at most ${MAX_ITEM_FIELDS} fields.` }];
  const unknown = names.filter((name) => !fields.has(name));
  if (unknown.length === 0) return [];
  const decisive = [...DECISIVE, ...OF_REPLIES.filter((name) => fields.has(name))];
  return unknown.flatMap((name): Issue[] => {
    const meant = FOREIGN.get(plainName(name)) ?? nearField(name, decisive);
    if (meant === null) return [];
    const ours = spelling(meant);
    const advice = fields.has(/^[^.]*/.exec(ours)?.[0] ?? ours)
      ? `Use "${ours}".`
      : `There is no "${ours}" here.`;
    return [{ param: name, message: `is not a field. ${advice}`, code: "unknown_field" }];
  });
}

const ITEM_FIELDS: ReadonlySet<string> = new Set(Object.keys(SendItem.properties));

/** Returns the issues of a send item's fields that resemble a decisive one. */
export function itemFieldIssues(item: unknown): Issue[] {
  return typeof item === "object" && item !== null ? decisiveFieldIssues(item, ITEM_FIELDS) : [];
}
