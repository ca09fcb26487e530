import type { Broadcast } from "../../api/types.ts";
import { mailboxText, parseMailboxes } from "../../words/addresses.ts";
import { localField } from "../../words/time.ts";

/** Names of the fields of a draft. */
export const FIELDS = [
  "name",
  "topicId",
  "segmentId",
  "from",
  "replyTo",
  "templateId",
  "subject",
  "html",
  "text",
  "scheduledAt",
  "ratePerHour",
] as const;
/** The fields of a draft as the form has them. */
export type Values = Record<(typeof FIELDS)[number], string>;

/** Returns the fields of a broadcast as the form has them. */
export function valuesOf(broadcast: Broadcast): Values {
  const { from, replyTo, scheduledAt, ratePerHour, ...rest } = broadcast;
  return {
    name: rest.name,
    topicId: rest.topicId,
    segmentId: rest.segmentId ?? "",
    from: mailboxText(from),
    replyTo: replyTo.map(mailboxText).join(", "),
    templateId: rest.templateId ?? "",
    subject: rest.subject ?? "",
    html: rest.html ?? "",
    text: rest.text ?? "",
    scheduledAt: scheduledAt === null ? "" : localField(Date.parse(scheduledAt)),
    ratePerHour: ratePerHour?.toString() ?? "",
  };
}

/** Returns the changes as the API takes them. */
export function bodyOf(values: Values): object {
  const orNull = (text: string) => (text === "" ? null : text);
  const { replyTo, scheduledAt, ratePerHour } = values;
  return {
    name: values.name.trim(),
    topicId: values.topicId,
    segmentId: orNull(values.segmentId),
    from: values.from.trim(),
    replyTo: replyTo.trim() === "" ? null : parseMailboxes(replyTo),
    templateId: orNull(values.templateId),
    subject: orNull(values.subject),
    html: orNull(values.html),
    text: orNull(values.text),
    scheduledAt: scheduledAt === "" ? null : new Date(scheduledAt).toISOString(),
    ratePerHour: ratePerHour.trim() === "" ? null : Number(ratePerHour),
  };
}
