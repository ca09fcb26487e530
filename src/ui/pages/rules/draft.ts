import type { Rule } from "../../api/types.ts";

/** The fields of the form of a rule. Empty: not set. */
export interface RuleDraft {
  name: string;
  /** Empty: all inboxes. */
  inboxId: string;
  from: string;
  to: string;
  subject: string;
  headerName: string;
  headerValue: string;
  files: "" | "yes" | "no";
  largerThan: string;
  auth: string;
  trust: string;
  spamScoreAbove: string;
  /** One a line. */
  labels: string;
  assigneeId: string;
  folder: string;
  replyTemplateId: string;
  forwardTo: string;
  archive: boolean;
  markRead: boolean;
  ends: "" | "stop" | "drop" | "reject";
  reject: string;
}

/** Returns the fields of a rule; null is one without any. */
export function draftOf(rule: Rule | null): RuleDraft {
  const when: Rule["when"] = rule?.when ?? {};
  const then: Rule["then"] = rule?.then ?? {};
  return {
    name: rule?.name ?? "",
    inboxId: rule?.inboxId ?? "",
    from: when.from ?? "",
    to: when.to ?? "",
    subject: when.subject ?? "",
    headerName: when.header?.name ?? "",
    headerValue: when.header?.value ?? "",
    files: when.hasAttachment === undefined ? "" : when.hasAttachment ? "yes" : "no",
    largerThan: when.largerThan?.toString() ?? "",
    auth: when.auth ?? "",
    trust: when.trust ?? "",
    spamScoreAbove: when.spamScoreAbove?.toString() ?? "",
    labels: (then.labels ?? []).join("\n"),
    assigneeId: then.assigneeId ?? "",
    folder: then.folder ?? "",
    replyTemplateId: then.replyTemplateId ?? "",
    forwardTo: then.forwardTo ?? "",
    archive: then.archive ?? false,
    markRead: then.markRead ?? false,
    ends: endOf(then),
    reject: then.reject ?? "",
  };
}

function endOf({ reject, drop, stop }: Rule["then"]): RuleDraft["ends"] {
  if (reject !== undefined) return "reject";
  return drop === true ? "drop" : stop === true ? "stop" : "";
}

/** Returns the body that saves the fields of the form. */
export function bodyOf(draft: RuleDraft) {
  const { name, inboxId, files, headerName, headerValue, labels, archive, markRead, ends } = draft;
  const text = (
    field:
      | ("from" | "to" | "subject" | "auth" | "trust")
      | ("assigneeId" | "folder" | "replyTemplateId" | "forwardTo"),
  ) => (draft[field] === "" ? {} : { [field]: draft[field] });
  const count = (field: "largerThan" | "spamScoreAbove") =>
    draft[field].trim() === "" ? {} : { [field]: Number(draft[field]) };
  const lines = labels.split("\n").flatMap((line) => (line.trim() === "" ? [] : [line.trim()]));
  return {
    name: name.trim(),
    inboxId: inboxId === "" ? null : inboxId,
    when: {
      ...text("from"),
      ...text("to"),
      ...text("subject"),
      ...headerOf(headerName.trim(), headerValue),
      ...(files === "" ? {} : { hasAttachment: files === "yes" }),
      ...count("largerThan"),
      ...text("auth"),
      ...text("trust"),
      ...count("spamScoreAbove"),
    },
    then: {
      ...(lines.length === 0 ? {} : { labels: lines }),
      ...text("assigneeId"),
      ...text("folder"),
      ...text("replyTemplateId"),
      ...text("forwardTo"),
      ...(archive ? { archive } : {}),
      ...(markRead ? { markRead } : {}),
      ...(ends === "reject" ? { reject: draft.reject.trim() } : ends === "" ? {} : { [ends]: true }),
    },
  };
}

/** A value without a name is given too, so that the API says what is missing. */
function headerOf(name: string, value: string) {
  if (name === "" && value === "") return {};
  return { header: { name, ...(value === "" ? {} : { value }) } };
}
