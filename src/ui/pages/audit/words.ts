import type { AuditEntry } from "../../api/types.ts";

/** Returns a change in words, such as `Domain record created`. */
export function actionText({ action }: AuditEntry): string {
  const [noun = "", verb = ""] = action.split(".");
  const done = verb.endsWith("e") ? `${verb}d` : (DONE[verb] ?? `${verb}ed`);
  const words = `${(NOUNS[noun] ?? noun).replaceAll("_", " ")} ${done}`;
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}

const NOUNS: Readonly<Record<string, string>> = {
  sender: "project",
  sign_in: "sign-in",
  dkim_key: "DKIM key",
  api_key: "API key",
};
const DONE: Readonly<Record<string, string>> = { cancel: "canceled" };

const ACTORS: Readonly<Record<AuditEntry["actor"]["type"], string>> = {
  member: "a member",
  key: "an API key",
  cli: "the command line",
  service: "Postrider",
};

/** Returns who made a change. */
export function actorText({ actor: { type, id, name } }: AuditEntry): string {
  return name ?? id ?? ACTORS[type];
}

const SIGN_INS: Readonly<Record<string, string>> = {
  key: "by an API key",
  link: "by a link",
  provider: "by the provider",
};

/** Returns what has changed. A refused sign-in without an address shows how it was tried, because its id is that of the request. */
export function targetText({ target: { id, name }, requestId, changes }: AuditEntry): string {
  if (name !== null || id !== requestId) return name ?? id;
  return SIGN_INS[String(changes.how?.[1])] ?? "without an address";
}

/** Returns a value before or after a change. */
export function valueText(value: AuditEntry["changes"][string][number]): string {
  if (value === null) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "string" ? value : JSON.stringify(value);
}
