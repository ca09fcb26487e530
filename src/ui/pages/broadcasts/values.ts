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
  "otherSubject",
  "share",
  "waitMinutes",
  "by",
  "html",
  "text",
  "scheduledAt",
  "ratePerHour",
] as const;
/** The fields of a draft as the form has them. */
export type Values = Record<(typeof FIELDS)[number], string>;

/** Returns the fields of a broadcast as the form has them. */
export function valuesOf(broadcast: Broadcast): Values {
  const { from, replyTo, scheduledAt, ratePerHour, abTest, ...rest } = broadcast;
  return {
    name: rest.name,
    topicId: rest.topicId,
    segmentId: rest.segmentId ?? "",
    from: mailboxText(from),
    replyTo: replyTo.map(mailboxText).join(", "),
    templateId: rest.templateId ?? "",
    subject: rest.subject ?? "",
    otherSubject: abTest?.subject ?? "",
    share: (abTest?.share ?? 0.2).toString(),
    waitMinutes: (abTest?.waitMinutes ?? 240).toString(),
    by: abTest?.by ?? "opens",
    html: rest.html ?? "",
    text: rest.text ?? "",
    scheduledAt: scheduledAt === null ? "" : localField(Date.parse(scheduledAt)),
    ratePerHour: ratePerHour?.toString() ?? "",
  };
}

/** Returns the changes as the API takes them. */
export function bodyOf(values: Values): object {
  const orNull = (text: string) => (text === "" ? null : text);
  const { replyTo, scheduledAt, ratePerHour, otherSubject, share, waitMinutes, by } = values;
  return {
    name: values.name.trim(),
    topicId: values.topicId,
    segmentId: orNull(values.segmentId),
    from: values.from.trim(),
    replyTo: replyTo.trim() === "" ? null : parseMailboxes(replyTo),
    templateId: orNull(values.templateId),
    subject: orNull(values.subject),
    abTest:
      otherSubject === ""
        ? null
        : { subject: otherSubject, share: Number(share), waitMinutes: Number(waitMinutes), by },
    html: orNull(values.html),
    text: orNull(values.text),
    scheduledAt: scheduledAt === "" ? null : new Date(scheduledAt).toISOString(),
    ratePerHour: ratePerHour.trim() === "" ? null : Number(ratePerHour),
  };
}
